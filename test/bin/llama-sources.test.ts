import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { writeLlamaSources } from '../../bin/llama-sources.ts'
import { full } from '../_full.ts'

const folder = mkdtempSync(join(tmpdir(), 'infer-llama-sources-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('the sources are small, reproducible, and contain the files that the build reads', () => {
  const [first, second] = [join(folder, 'first.tar.xz'), join(folder, 'second.tar.xz')]
  const size = writeLlamaSources(first)
  expect(size).toBeLessThan(1_000_000)
  if (full) {
    writeLlamaSources(second)
    expect(readFileSync(second).equals(readFileSync(first))).toBe(true)
  }

  const files = execFileSync('tar', ['--list', '--file', first], { encoding: 'utf8' }).split('\n')
  expect(files).toEqual(
    expect.arrayContaining([
      'LICENSE',
      'ggml/include/ggml.h',
      'ggml/src/ggml-cuda/ggml-cuda.cu',
      'ggml/src/ggml-cuda/template-instances/fattn-vec-instance-f16-f16.cu',
      'common/common.h',
      'tools/server/server.cpp',
    ]),
  )
  const unwanted = /^(tests|docs|models|gguf-py|tools\/(ui|mtmd\/models)|ggml\/src\/ggml-(cpu|vulkan|metal))\//
  expect(files.filter(path => unwanted.test(path))).toEqual([])
})
