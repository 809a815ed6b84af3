import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { llamaVersion } from '../../core/assets.ts'
import { cacheDirectory } from '../../core/extraction.ts'
import { findBuilds } from '../../gpu/engines/gguf/backend-packages.ts'

/** `.ci/run` installs the builds here, and Mesa's drivers. */
export const backends = join(import.meta.dirname, '../../build/backends')
const manifests = '/usr/share/vulkan/icd.d'
const manifest = existsSync(manifests) && readdirSync(manifests).find(name => name.startsWith('lvp_icd'))
const built = findBuilds('vulkan', backends, llamaVersion)
/** Why there is no Vulkan device on this machine; empty if there is one. */
export const missing = manifest
  ? built.ok || process.arch !== 'x64'
    ? ''
    : `the build is not installed: ${built.why}`
  : `Mesa's software driver (mesa-vulkan-drivers) is not installed`
export const driver = join(manifests, manifest || '')

/** The environment of a machine with these drivers: a processor is a device only if it is named. */
export const environment = (drivers: string, visible: string) => ({
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  OMP_WAIT_POLICY: 'PASSIVE',
  INFER_BACKENDS_DIR: backends,
  VK_DRIVER_FILES: drivers,
  GGML_VK_VISIBLE_DEVICES: visible,
})

/** Makes a cache directory below a folder that has the shaders of earlier runs, which take 10 to 30 s to compile. */
export function cacheWithShaders(folder: string): string {
  const shaders = join(cacheDirectory(), 'mesa')
  const cache = join(folder, 'cache')
  for (const one of [shaders, cache]) mkdirSync(one, { recursive: true })
  symlinkSync(shaders, join(cache, 'mesa'))
  return cache
}
