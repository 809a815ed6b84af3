import { join } from 'node:path'
import { optionalNames } from '../../core/optional-file.ts'
import { divideRequirements } from './environment-kinds.ts'

const normalized = (name: string): string => name.toLowerCase().replaceAll(/[-_.]+/g, '-')

/** The packages in a Python environment: names as indexes write them, and versions. */
export function packagesIn(environment: string): Map<string, string> {
  const libraries = optionalNames(join(environment, 'lib')).find(one => one.startsWith('python3')) ?? ''
  const found = optionalNames(join(environment, 'lib', libraries, 'site-packages'))
  return new Map(
    found.flatMap(one => {
      const [, name, version] = /^(.+)-([^-]+)\.dist-info$/.exec(one) ?? []
      return name === undefined ? [] : [[normalized(name), version!] as const]
    }),
  )
}

/** The versions that a list of requirements with hashes names, by the names of the packages. Pure. */
export const packagesOf = (list: string): Map<string, string> =>
  new Map(
    Array.from(list.matchAll(/^([A-Za-z0-9._-]+)==([^\s;\\]+)/gm), ([, name, version]) => [
      normalized(name!),
      version!,
    ]),
  )

/** A library whose version differs. `from` is null for one that is added, `to` for one that is left out. */
export interface LibraryChange {
  library: string
  from: string | null
  to: string | null
}

/**
 * What differs between the packages of an environment and a list of requirements. With `ownTorch` another build of PyTorch
 * is installed, and the packages that only the build of the index needs do not count. Packages that nobody would install
 * here, by the condition of their requirement, do not count either. Pure.
 */
export function changesBetween(
  installed: ReadonlyMap<string, string>,
  list: string,
  { ownTorch }: { ownTorch: boolean },
): LibraryChange[] {
  const { common, torch } = ownTorch ? divideRequirements(list) : { common: list, torch: [] }
  const wanted = packagesOf([common, ...torch].join('\n'))
  return [...wanted].flatMap(([library, to]) => {
    // A build of PyTorch has its name behind the version, as in 2.13.0+cu128.
    const from = installed.get(library)?.replace(/\+.*/, '') ?? null
    return from === to || (from === null && installed.size === 0) ? [] : [{ library, from, to }]
  })
}

/** Packages that a user has put into an environment, with their versions. Pure. */
export const addedByUser = (installed: ReadonlyMap<string, string>, list: string): string[] => {
  const known = packagesOf(list)
  const isOfTools = (name: string) => ['pip', 'setuptools', 'wheel', 'infer-worker'].includes(name)
  const isOfTorch = (name: string) => /^(torch|torchaudio|torchvision|triton|nvidia-|cuda-)/.test(name)
  return [...installed]
    .filter(([name]) => !known.has(name) && !isOfTools(name) && !isOfTorch(name))
    .map(([name, version]) => `${name}==${version}`)
    .toSorted()
}
