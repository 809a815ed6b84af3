import { Failure, invalidValue } from '../../failure.ts'

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

/** Chooses exactly these files, by their paths. Throws Failure `model_not_found` for one that is not in the repository. */
export function filesByName(repository: string, files: readonly HubFile[], names: readonly string[]): DownloadChoice {
  const byPath = new Map(files.map(file => [file.path, file]))
  const found = names.map(name => {
    const file = byPath.get(name)
    if (!file) throw new Failure('model_not_found', `The repository ${repository} has no file '${name}'.`)
    return file
  })
  return { kind: 'snapshot', files: found, main: null, others: [] }
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
      throw invalidValue(
        `'${requested}' matches several files of ${repository}: ${pathList(found.map(({ path }) => path))}. Name one with its whole path.`,
      )
  }
  const available = models.length > 0 ? models.map(({ main }) => main) : files.map(({ path }) => path)
  throw new Failure(
    'model_not_found',
    `The repository ${repository} has no file '${requested}'. It has: ${pathList(available)}.`,
  )
}

/** Lists up to twelve names, and how many more there are. */
const pathList = (paths: readonly string[]): string =>
  [...paths.slice(0, 12), ...(paths.length > 12 ? [`and ${paths.length - 12} more`] : [])].join(', ')

/**
 * Chooses the files of a model that is not GGUF: a pipeline of diffusers, a model of transformers, Whisper for
 * CTranslate2, a voice, or the only safetensors file. `index` is the parsed model_index.json. Throws Failure
 * `model_not_found` if there is no model, and `invalid_value` if a file must be named.
 */
function chooseFolder(repository: string, files: readonly HubFile[], index: unknown): DownloadChoice {
  const paths = files.map(({ path }) => path)
  const folder = (chosen: HubFile[]): DownloadChoice => ({ kind: 'snapshot', files: chosen, main: null, others: [] })
  if (paths.includes('model_index.json')) return folder(pipelineFiles(repository, files, index))
  const weights = paths.filter(path => path.endsWith('.safetensors'))
  if (paths.includes('model.bin') && paths.some(path => /^vocabulary\.(json|txt)$/.test(path)))
    return folder(files.filter(({ path }) => /^(model\.bin|vocabulary\.(json|txt)|[\w-]+\.json)$/.test(path)))
  if (paths.some(path => /^kokoro[^/]*\.pth$/i.test(path)))
    return folder(files.filter(({ path }) => /^(config\.json|kokoro[^/]*\.pth|voices\/[^/]+\.pt)$/i.test(path)))
  const voices = paths.filter(path => path.endsWith('.onnx') && paths.includes(`${path}.json`))
  if (weights.length === 0 && voices.length === 1) return oneFile(files, voices[0]!)
  if (weights.length === 0 && voices.length > 1)
    throw invalidValue(
      `The repository ${repository} has ${voices.length} voices. Name one, such as hf:${repository}:${voices[0]}. It has: ${pathList(voices)}.`,
    )
  if (weights.length > 0 && paths.some(path => /^(config|params|adapter_config|modules)\.json$/.test(path)))
    return folder(snapshotOf(files))
  if (weights.length === 1) return oneFile(files, weights[0]!)
  if (weights.length > 1)
    throw invalidValue(
      `The repository ${repository} has several safetensors files and no configuration. Name one, such as hf:${repository}:${weights[0]}. It has: ${pathList(weights)}.`,
    )
  throw new Failure(
    'model_not_found',
    `The repository ${repository} has neither a GGUF file nor safetensors files, so infer cannot run it. Look for a repository whose name ends in -GGUF.`,
  )
}

const oneFile = (files: readonly HubFile[], main: string): DownloadChoice => ({
  kind: 'file',
  files: files.filter(({ path }) => path === main || path === `${main}.json`),
  main,
  others: [],
})

/** Variants of weights with half the size, in the order of preference. */
const variants = ['fp16', 'bf16'] as const

/** Returns the variant in the name of a file of weights or of their index: `fp16` of `model.fp16.safetensors`. */
const variantOf = (path: string): string | null =>
  /\.(fp16|bf16|fp32|non_ema|ema_only|ema)(?=[.-])/.exec(path.split('/').at(-1)!)?.[1] ?? null

/**
 * Returns the files of a pipeline of diffusers: those of the parts that model_index.json names, and of their weights the
 * safetensors files of one variant, half precision where there is one. Weights in other formats and complete
 * checkpoints beside the parts are left out.
 */
function pipelineFiles(repository: string, files: readonly HubFile[], index: unknown): HubFile[] {
  const named = partsOf(index)
  const isPart = (folder: string) => named === null || named.has(folder)
  const variant = variants.find(one =>
    files.some(({ path }) => path.endsWith('.safetensors') && variantOf(path) === one),
  )
  const chosen: HubFile[] = []
  for (const [folder, inside] of byFolder(files)) {
    if (folder === '') {
      chosen.push(...inside.filter(({ path }) => /^(model_index\.json|[\w.-]+\.py)$/.test(path)))
      continue
    }
    if (!isPart(folder)) continue
    const weights = inside.filter(({ path }) => path.endsWith('.safetensors'))
    const has = (one: string | null) => weights.some(({ path }) => variantOf(path) === one)
    const use = variant !== undefined && has(variant) ? variant : has(null) ? null : undefined
    if (use === undefined && inside.some(({ path }) => /\.(bin|ckpt|pt|msgpack)$/.test(path)))
      throw new Failure(
        'model_not_found',
        `The repository ${repository} has no safetensors files for its ${folder}. Other files of weights can run code when they are loaded, so infer does not take them.`,
      )
    chosen.push(
      ...inside.filter(({ path }) =>
        /\.safetensors(\.index(\.\w+)?\.json)?$/.test(path)
          ? variantOf(path) === use
          : /\.(json|jinja|txt|model|tiktoken|py)$/.test(path),
      ),
    )
  }
  return chosen
}

/** Returns the names of the parts of a pipeline; null if the index does not tell. */
function partsOf(index: unknown): ReadonlySet<string> | null {
  if (typeof index !== 'object' || index === null) return null
  const parts = Object.entries(index).filter(([, value]) => Array.isArray(value) && value[1] !== null)
  return parts.length === 0 ? null : new Set(parts.map(([name]) => name))
}

function byFolder(files: readonly HubFile[]): Map<string, HubFile[]> {
  const folders = new Map<string, HubFile[]>()
  for (const file of files) {
    const folder = file.path.includes('/') ? file.path.split('/')[0]! : ''
    folders.set(folder, [...(folders.get(folder) ?? []), file])
  }
  return folders
}

/**
 * Returns the files that a safetensors engine reads: weights, configuration, tokenizer, code. Files with the same weights
 * in another form are left out: `original/` and `consolidated…` beside an index, and folders for other programs.
 */
function snapshotOf(files: readonly HubFile[]): HubFile[] {
  const indexed = files.some(({ path }) => path === 'model.safetensors.index.json' || path === 'model.safetensors')
  return files.filter(
    ({ path }) =>
      /\.(safetensors|json|jinja|txt|model|tiktoken|py)$/.test(path) &&
      !/^(original|metal|onnx|openvino|coreml)\//.test(path) &&
      !(indexed && /^consolidated[.\d-]*.*\.safetensors$/.test(path)),
  )
}
