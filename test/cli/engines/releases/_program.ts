import { tarball } from '../../../fixtures/npm-package.ts'

/**
 * A program that behaves like llama-server as far as infer tries it: it tells its version, lists its devices, and answers
 * with its version as text, if it gets the options with which the server starts llama-server.
 */
export const serverProgram = (version: string, devices = '  (none)'): Buffer =>
  Buffer.from(`#!${process.execPath}
const given = process.argv.slice(2)
if (given[0] === '--version') { console.error('version: ${version} (abc)'); process.exit() }
if (given[0] === '--list-devices') { console.log('Available devices:\\n${devices}'); process.exit() }
const valueOf = name => given[given.indexOf(name) + 1]
if (valueOf('--host') !== '127.0.0.1' || !valueOf('-m').endsWith('.gguf')) process.exit(3)
require('node:http').createServer((request, response) => {
  if (request.url === '/health') return response.end('{"status":"ok"}')
  if (request.headers.authorization !== 'Bearer ' + process.env.LLAMA_API_KEY) return response.writeHead(401).end()
  response.end(JSON.stringify({ choices: [{ text: '${version}' }] }))
}).listen(Number(valueOf('--port')), '127.0.0.1')
`)

export const shell = (script: string): Buffer => Buffer.from(`#!/bin/sh\n${script}\n`)

/** An archive as llama.cpp publishes it, with this program, a library and its links. */
export const llamaArchive = (version: string, program: Buffer): Buffer =>
  tarball([
    { path: `llama-${version}/`, type: '5' },
    { path: `./llama-${version}/LICENSE`, bytes: Buffer.from('MIT License') },
    { path: `llama-${version}/libllama.so.0.1`, bytes: Buffer.from('library') },
    { path: `llama-${version}/libllama.so.0`, type: '2', link: 'libllama.so.0.1' },
    { path: `llama-${version}/libllama.so`, type: '2', link: 'libllama.so.0' },
    { path: `llama-${version}/llama-server`, bytes: program, mode: 0o755 },
  ])
