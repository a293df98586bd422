#!/bin/sh
# Builds the page into dist/, which is committed, so that cargo needs no Node: npm ci && npm run build
set -eu
cd "$(dirname "$0")"
npx esbuild src/app.js --bundle --minify --format=iife --target=es2020 --legal-comments=inline --outfile=dist/app.js
npx esbuild src/app.css --minify --outfile=dist/app.css
cp src/index.html src/icon.svg dist/
# The page contains this library.
cp node_modules/cytoscape/LICENSE dist/cytoscape.LICENSE
