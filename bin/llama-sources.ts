import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from './bundle.ts'

/** llama.cpp's sources in the release that node-llama-cpp is built from. */
const bundle = join(root, 'node_modules/node-llama-cpp/llama/gitRelease.bundle')

/**
 * What a build of the CUDA backend and of llama-server reads beside the libraries of @node-llama-cpp/linux-x64.
 * Other backends, the CPU backend, llama.cpp itself, its tools, tests, web interface and projectors stay out.
 */
const paths = [
  'LICENSE',
  'include',
  'ggml/include',
  ':(glob)ggml/src/*.h',
  ':(glob)ggml/src/ggml-cuda/*.cu',
  ':(glob)ggml/src/ggml-cuda/*.cuh',
  'ggml/src/ggml-cuda/vendors/cuda.h',
  // Of the kernels in many variants those that test/gpu/checks/llama/CMakeLists.txt compiles.
  'ggml/src/ggml-cuda/template-instances/mmq-instance-q8_0.cu',
  ':(glob)ggml/src/ggml-cuda/template-instances/mmf-*.cu',
  ':(glob)ggml/src/ggml-cuda/template-instances/fattn-vec-*.cu',
  ':(glob)common/*.h',
  ':(glob)common/*.hpp',
  ':(glob)common/jinja/*.h',
  ':(glob)src/*.h',
  ':(glob)tools/server/*.cpp',
  ':(glob)tools/server/*.h',
  'tools/mtmd/mtmd.h',
  'tools/mtmd/mtmd-helper.h',
  'vendor/cpp-httplib/httplib.h',
  'vendor/cpp-httplib/LICENSE',
  ':(glob)vendor/nlohmann/*.hpp',
  'vendor/sheredom/subprocess.h',
]

/**
 * Writes these sources as a tar.xz. Files have the time of the release's commit, so that the same git and xz give the
 * same bytes. Returns the size of the file in bytes. Throws when git or xz is missing.
 */
export function writeLlamaSources(target: string): number {
  const work = mkdtempSync(join(tmpdir(), 'infer-llama-sources-'))
  try {
    const repository = join(work, 'repository')
    const tar = join(work, 'sources.tar')
    execFileSync('git', ['clone', '--quiet', '--bare', bundle, repository], { stdio: ['ignore', 'ignore', 'pipe'] })
    execFileSync('git', ['-C', repository, 'archive', '--format=tar', `--output=${tar}`, 'HEAD', ...paths])
    const output = openSync(`${target}.new`, 'w')
    execFileSync('xz', ['-9e', '--threads=1', '--stdout', tar], { stdio: ['ignore', output, 'pipe'] })
    closeSync(output)
    renameSync(`${target}.new`, target)
    return statSync(target).size
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
