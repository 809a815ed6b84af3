import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bundleProgram } from '../../bin/bundle.ts'
import { infer } from '../cli/_infer.ts'

const root = join(import.meta.dirname, '../..')
const text = readFileSync(join(root, 'dist/assets/licenses.txt'), 'utf8')
const list = text.split('\n'.padEnd(80, '-'))[0]!

/** The bundler writes the origin of each file before it, unless it omits comments. */
async function bundledPackages(): Promise<string[]> {
  const program = await bundleProgram('0.0.0', false)
  const vendored = [
    'vendor/node_modules/node-llama-cpp/dist/index.js',
    'vendor-sharp/node_modules/sharp/dist/index.cjs',
  ].map(file => readFileSync(join(root, 'dist', file), 'utf8'))
  const places = [...program.map(({ text: code }) => code), ...vendored].flatMap(code => [
    ...code.matchAll(/^\s*\/\/ (node_modules\/(?:.*\/node_modules\/)?(?:@[^/\n]+\/)?[^/\n]+)\//gm),
  ])
  return [...new Set(places.map(([, folder]) => folder!))]
}

const folders = await bundledPackages()

const about = (folder: string) =>
  JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as { name: string; version: string }

test('every package in the bundles is named with its version and its licence text', () => {
  expect(folders.length).toBeGreaterThan(40)
  for (const folder of folders) {
    const { name, version } = about(folder)
    expect(list, folder).toContain(`\n${name} ${version}: `)
    const file = readdirSync(join(root, folder)).find(one => /^licen[cs]e/i.test(one))
    if (file) expect(text, folder).toContain(readFileSync(join(root, folder, file), 'utf8').trim())
  }
})

test('files that are included unchanged and compiled-in code are named too', () => {
  const vendored = readdirSync(join(root, 'dist/vendor/node_modules/@node-llama-cpp'))
  for (const name of [
    ...vendored.map(one => `@node-llama-cpp/${one}`),
    'better-sqlite3',
    '@scalar/api-reference',
    'dejavu-fonts-ttf',
  ])
    expect(list).toContain(`\n${name} ${about(`node_modules/${name}`).version}: `)
  for (const name of ['Node.js 24', 'llama.cpp v', 'vue 3', 'cpp-httplib', 'nlohmann-json'])
    expect(list).toContain(name)
  expect(text).toContain('Copyright (c) 2023-2026 The ggml authors')
  expect(text).toContain('Copyright Node.js contributors')
})

test('no licence requires more than its text, except those of libraries in separate files', () => {
  expect(existsSync(join(root, 'dist/assets/licenses.txt'))).toBe(true)
  const ownFiles = /libvips|^LAME|^codec-parser|^mpg123 in/
  const lines = list.split('\n')
  const others = lines.filter(line => !ownFiles.test(line))
  expect(lines.filter(line => ownFiles.test(line))).toEqual([
    expect.stringMatching(/^@img\/sharp-libvips-linux-x64 .*: LGPL-3\.0-or-later$/),
    expect.stringMatching(/^LAME in wasm-media-encoders .*: LGPL-2\.0-or-later$/),
    expect.stringMatching(/^codec-parser .*: LGPL-3\.0-or-later$/),
    expect.stringMatching(/^mpg123 in mpg123-decoder .*: LGPL-2\.1$/),
  ])
  expect(others.join('\n')).not.toMatch(/: .*(GPL|SSPL|BUSL|Elastic|Commons Clause|UNLICENSED)/)
  expect(text).toContain('GNU LESSER GENERAL PUBLIC LICENSE')
  expect(text).toContain('| libheif       | LGPLv3')
  expect(text).toContain('GNU LIBRARY GENERAL PUBLIC LICENSE')
  for (const own of ['audio/mp3.wasm', 'audio-decoders.cjs'])
    expect(existsSync(join(root, 'dist/assets', own)), own).toBe(true)
  for (const program of ['main.cjs', 'cpu-worker.cjs', 'store-writer.cjs'])
    expect(readFileSync(join(root, 'dist', program), 'utf8'), program).not.toMatch(/mpg123|codec-parser/)
  expect(folders.some(folder => /libvips/.test(folder))).toBe(false)
})

test('infer licenses prints them', async () => {
  const { exitCode, stdout, stderr } = await infer(['licenses'])
  expect([exitCode, stderr]).toEqual([0, ''])
  // Page breaks and carriage returns of some licences are control characters, which no terminal gets.
  expect(stdout === `${text.trimEnd().replaceAll(/[\f\r]/g, '')}\n`).toBe(true)
})
