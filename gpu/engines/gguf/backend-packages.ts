import { hash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { optionalJson } from '../../../core/optional-file.ts'
import { type BackendName, packagesOf } from './backend.ts'

/**
 * `why` is the reason why the builds cannot be used, as a sentence without full stop. `instead` is advice for machines
 * without an installable build.
 */
export type BackendFound = { ok: true } | { ok: false; why: string; instead?: string }

/**
 * Checks that the builds of a backend are installed below the folder, in the required version. Other users must not have
 * write access, because native code is loaded from it.
 */
export function findBuilds(
  name: BackendName,
  folder: string,
  version: string,
  architecture: string = process.arch,
): BackendFound {
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
    for (const part of within) {
      const stat = statSync(part, { throwIfNoEntry: false })
      if (!stat) return { ok: false, why: `${one} in ${folder} lacks ${part}; install it again` }
      const { uid, mode } = stat
      if (uid !== 0 && uid !== process.getuid?.()) return { ok: false, why: `${part} belongs to another user` }
      if (mode & 0o022) return { ok: false, why: `other users can write to ${part}` }
    }
  }
  // `infer engine setup gpu` leaves it out where only the build for older drivers runs.
  if (name === 'cuda' && !existsSync(mainLibraryIn(folder)) && findBuilds('cuda-12', folder, version, architecture).ok)
    return { ok: false, why: `only the build for older drivers is installed in ${folder}` }
  return { ok: true }
}

/** Identifies the installed builds by package, version and time. */
export const buildsAt = (folder: string): string[] =>
  [...new Set(Object.values(packagesOf).flat())].flatMap(name => {
    const path = join(folder, 'node_modules', name)
    const version = versionAt(path)
    return version === undefined ? [] : [`${name}@${version} ${statSync(join(path, 'package.json')).mtimeMs}`]
  })

const versionAt = (path: string): string | undefined =>
  (optionalJson(join(path, 'package.json')) as { version?: string } | undefined)?.version

const [cuda, ext] = packagesOf['cuda-12'] as [string, string]
const mainLibrary = 'libggml-cuda.so'
const mainLibraryIn = (folder: string) => join(folder, 'node_modules', cuda, 'bins/linux-x64-cuda', mainLibrary)

/**
 * Creates a folder that contains only the CUDA build for older drivers: llama.cpp prefers the main build and falls
 * back only if that cannot be loaded. The large library is linked; the rest (30 MB) is copied, because Node resolves
 * links to the original folder. Created once per set of builds. A folder without the main build is returned itself.
 */
export function openOlderCuda(folder: string, cache: string): string {
  if (!existsSync(mainLibraryIn(folder))) return folder
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
    // Another process created the same folder first.
    if (!existsSync(view)) throw cause
  }
  return view
}
