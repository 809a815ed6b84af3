import { Failure } from '../../failure.ts'
import { chooseFolder } from './choose-folder.ts'
import { pathList } from './path-list.ts'

/** A file of a repository. */
export interface HubFile {
  path: string
  /** Bytes. */
  size: number
  /** Hash of its content: sha256 for large files, the git hash for others. */
  hash: { kind: 'sha256' | 'git'; hex: string }
}

/** The files to download, and the other models of the repository. */
export interface DownloadChoice {
  /** One GGUF model, in one or several files, or the files of a safetensors model. */
  kind: 'gguf' | 'snapshot' | 'file'
  files: readonly HubFile[]
  /** Path of the file, or of the first part of a model in parts; null for a snapshot. */
  main: string | null
  /** The other models of the repository, by the path of their (first) file. */
  others: readonly string[]
}

/**
 * Quantizations in the order of preference when none is named: first the best quality for their size, then larger ones
 * with little or no loss, then smaller ones with more loss. Without any of them the smallest model is chosen.
 */
export const preferredQuantizations = [
  'Q4_K_M',
  'Q4_K_S',
  'Q5_K_M',
  'Q5_K_S',
  'MXFP4',
  'Q6_K',
  'Q8_0',
  'Q4_0',
  'IQ4_XS',
  'IQ4_NL',
  'Q3_K_M',
  'Q3_K_L',
  'F16',
  'BF16',
  'F32',
] as const

const partSuffix = /-(\d{5})-of-(\d{5})\.gguf$/i

/** GGUF files that are not models by themselves: vision projectors, importance matrices, adapters, vocabularies. */
const companion = /(^|[-_./])(mmproj|imatrix|lora|adapter|vocab)([-_.]|$)/i

/** Returns the quantization in the name of a file, in capitals. */
export const quantizationOf = (path: string): string | undefined =>
  /(?:^|[-._/])((?:I?Q\d+(?:_[A-Z0-9]+)*)|TQ\d_\d|MXFP4(?:_MOE)?|BF16|F16|F32)(?=[-._/]|$)/i
    .exec(path.replace(partSuffix, '').replace(/\.gguf$/i, ''))?.[1]
    ?.toUpperCase()
    .replace('MXFP4_MOE', 'MXFP4')

interface Model {
  main: string
  files: HubFile[]
  bytes: number
}

/**
 * Chooses the files to download. `requested` is a path, the name of a file, or a quantization. Throws Failure
 * `model_not_found`, which lists the available files, if none matches, and `invalid_value` if several match.
 */
export function chooseFiles(
  repository: string,
  files: readonly HubFile[],
  requested: string | null,
  /** The parsed model_index.json of the repository, if it has one. */
  index?: unknown,
): DownloadChoice {
  const models = modelsIn(files)
  if (requested !== null) {
    const found = named(repository, files, models, requested)
    const model = models.find(one => one.files.some(file => file.path === found))
    const main = model?.main ?? found
    return {
      kind: main.toLowerCase().endsWith('.gguf') ? 'gguf' : 'file',
      // A voice for Piper has its configuration beside it.
      files: model?.files ?? files.filter(file => file.path === found || file.path === `${found}.json`),
      main,
      others: models.map(one => one.main).filter(path => path !== main),
    }
  }
  const usual = models.filter(({ main }) => !companion.test(main))
  if (usual.length > 0) {
    const [best] = usual.toSorted((a, b) => rank(a) - rank(b) || a.bytes - b.bytes || (a.main < b.main ? -1 : 1))
    return {
      kind: 'gguf',
      files: best!.files,
      main: best!.main,
      others: models.map(one => one.main).filter(path => path !== best!.main),
    }
  }
  return chooseFolder(repository, files, index)
}

/** Returns the GGUF models: single files, and parts that belong together. */
function modelsIn(files: readonly HubFile[]): Model[] {
  const groups = new Map<string, Model>()
  for (const file of files.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    if (!file.path.toLowerCase().endsWith('.gguf')) continue
    const [, , count] = partSuffix.exec(file.path) ?? []
    const key = count === undefined ? file.path : file.path.replace(partSuffix, `-of-${count}`)
    const group = groups.get(key) ?? { main: file.path, files: [], bytes: 0 }
    group.files.push(file)
    group.bytes += file.size
    groups.set(key, group)
  }
  // A set that lacks a part cannot be loaded.
  return [...groups.values()].filter(
    ({ main, files: parts }) => parts.length === Number(partSuffix.exec(main)?.[2] ?? 1),
  )
}

function rank({ main }: Model): number {
  const at = (preferredQuantizations as readonly string[]).indexOf(quantizationOf(main) ?? '')
  return at < 0 ? preferredQuantizations.length : at
}

function named(repository: string, files: readonly HubFile[], models: readonly Model[], requested: string): string {
  const lower = requested.toLowerCase()
  const byPath = files.filter(({ path }) => path === requested || path === `${requested}.gguf`)
  const byName = files.filter(({ path }) => path.toLowerCase().split('/').at(-1) === lower)
  const byQuantization = models
    .filter(({ main }) => quantizationOf(main) === requested.toUpperCase() && !companion.test(main))
    .map(({ main }) => ({ path: main }))
  for (const found of [byPath, byName, byQuantization]) {
    if (found.length === 1) return found[0]!.path
    if (found.length > 1)
      throw new Failure(
        'invalid_value',
        `'${requested}' matches several files of ${repository}: ${pathList(found.map(({ path }) => path))}. Name one with its whole path.`,
      )
  }
  const available = models.length > 0 ? models.map(({ main }) => main) : files.map(({ path }) => path)
  throw new Failure(
    'model_not_found',
    `The repository ${repository} has no file '${requested}'. It has: ${pathList(available)}.`,
  )
}
