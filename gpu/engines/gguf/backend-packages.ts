import { hash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { type BackendName, packagesOf } from './backend.ts'

/**
 * `why` says why the builds cannot be used, as a sentence without its full stop. `instead` says what to do where there
 * are none to install.
 */
export type Found = { ok: true } | { ok: false; why: string; instead?: string }

/**
 * Whether the builds of a backend lie below the folder as npm puts them there, in the version that fits. Native code is
 * run from it, so that nobody else may write to it.
 */
export function findBuilds(
  name: BackendName,
  folder: string,
  version: string,
  architecture: string = process.arch,
): Found {
  if (architecture !== 'x64' && packagesOf[name].length > 0)
    return {
      ok: false,
      why: `node-llama-cpp publishes no ${name} build for ${architecture}`,
      instead: 'To use the GPU, build llama.cpp on this machine and set "engine: llama-server" in infer.yaml.',
    }
  for (const one of packagesOf[name]) {
    const path = join(folder, 'node_modules', one)
    const found = versionAt(path)
    if (found === undefined) return { ok: false, why: `${one}@${version} is not installed in ${folder}` }
    if (found !== version)
      return { ok: false, why: `${one} in ${folder} is version ${found}, and ${version} is needed` }
    const within = [folder, join(folder, 'node_modules'), dirname(path), path, join(path, 'dist'), join(path, 'bins')]
    for (const place of within) {
      const stat = statSync(place, { throwIfNoEntry: false })
      if (!stat) return { ok: false, why: `${one} in ${folder} lacks ${place}; install it again` }
      const { uid, mode } = stat
      if (uid !== 0 && uid !== process.getuid?.()) return { ok: false, why: `${place} belongs to another user` }
      if (mode & 0o022) return { ok: false, why: `others can write to ${place}` }
    }
  }
  return { ok: true }
}

/** What tells one set of builds from another. */
export const buildsAt = (folder: string): string[] =>
  [...new Set(Object.values(packagesOf).flat())].flatMap(name => {
    const path = join(folder, 'node_modules', name)
    const version = versionAt(path)
    return version === undefined ? [] : [`${name}@${version} ${statSync(join(path, 'package.json')).mtimeMs}`]
  })

function versionAt(path: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as { version?: string }).version
  } catch {
    return undefined
  }
}

const [cuda, ext] = packagesOf['cuda-12'] as [string, string]
const mainLibrary = 'libggml-cuda.so'

/**
 * A folder in which the CUDA build for older drivers is the only one: llama.cpp takes the one beside it, and the other
 * only when that cannot be loaded, so it must not be there. The rest is copied, 30 MB, because Node follows links back
 * to where the library is; the large one is linked. Made once for each set of builds.
 */
export function openOlderCuda(folder: string, cache: string): string {
  const view = join(cache, `cuda-12-${hash('sha256', JSON.stringify([folder, buildsAt(folder)])).slice(0, 16)}`)
  if (existsSync(view)) return view
  const temporary = `${view}.${process.pid}.tmp`
  const from = (name: string, ...path: string[]) => join(folder, 'node_modules', name, ...path)
  const to = (name: string, ...path: string[]) => join(temporary, 'node_modules', name, ...path)
  rmSync(temporary, { recursive: true, force: true })
  for (const name of [cuda, ext])
    for (const path of ['package.json', 'dist']) {
      mkdirSync(dirname(to(name, path)), { recursive: true, mode: 0o700 })
      cpSync(from(name, path), to(name, path), { recursive: true })
    }
  cpSync(from(cuda, 'bins'), to(cuda, 'bins'), {
    recursive: true,
    filter: path => !path.endsWith(`/${mainLibrary}`),
  })
  symlinkSync(from(ext, 'bins'), to(ext, 'bins'))
  try {
    renameSync(temporary, view)
    for (const old of readdirSync(cache).filter(name => /^cuda-12-[0-9a-f]{16}$/.test(name)))
      if (join(cache, old) !== view) rmSync(join(cache, old), { recursive: true, force: true })
  } catch (cause) {
    rmSync(temporary, { recursive: true, force: true })
    // Another process was faster; its view is the same.
    if (!existsSync(view)) throw cause
  }
  return view
}
