import { Failure } from '../../failure.ts'
import type { DownloadChoice, HubFile } from './choose.ts'
import { pathList } from './path-list.ts'

/**
 * Chooses the files of a model that is not GGUF: a pipeline of diffusers, a model of transformers, Whisper for
 * CTranslate2, a voice, or the only safetensors file. `index` is the parsed model_index.json. Throws Failure
 * `model_not_found` if there is no model, and `invalid_value` if a file must be named.
 */
export function chooseFolder(repository: string, files: readonly HubFile[], index: unknown): DownloadChoice {
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
    throw new Failure(
      'invalid_value',
      `The repository ${repository} has ${voices.length} voices. Name one, such as hf:${repository}:${voices[0]}. It has: ${pathList(voices)}.`,
    )
  if (weights.length > 0 && paths.some(path => /^(config|params|adapter_config|modules)\.json$/.test(path)))
    return folder(snapshotOf(files))
  if (weights.length === 1) return oneFile(files, weights[0]!)
  if (weights.length > 1)
    throw new Failure(
      'invalid_value',
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
