import { Failure, invalidValue } from '../../failure.ts'
import { type GgufContents, parseGguf, type ReadRequest } from '../gguf-format.ts'
import { type GgufHeader, ggufHeader } from '../gguf-header.ts'
import { parseJsonFile } from '../recognition/read-local.ts'
import { recogniseSafetensors } from '../recognition/recognise-file.ts'
import { decidingFiles, recogniseFolder, recogniseVoiceFile } from '../recognition/recognise-folder.ts'
import type { Recognition } from '../recognition/recognition.ts'
import { parseSafetensors } from '../recognition/safetensors-header.ts'
import type { DownloadChoice, HubFile } from './choose.ts'
import { type HubFetch, hubUnreachable, type RetryRules, withRetries } from './requests.ts'

export interface RangeTools {
  ask: HubFetch
  retryRules: RetryRules
  signal: AbortSignal
}

/** Bytes of one request. A round trip costs more than a few megabytes, and headers have up to twenty. */
const pieceBytes = 4 << 20

/**
 * Drives a header parser with ranges of a file of `size` bytes on a server. Null if the server does not support ranges.
 * Rejects with the Failures of the parser, and for network errors.
 */
async function readRanges<T>(
  parser: Generator<ReadRequest, T, Uint8Array>,
  { url, size }: { url: string; size: number },
  { ask, retryRules, signal }: RangeTools,
): Promise<T | null> {
  let step = parser.next()
  while (!step.done) {
    const { at, bytes } = step.value
    const end = Math.min(size, at + Math.max(bytes, pieceBytes))
    const piece = await withRetries(() => readRange(url, at, end, ask), { retryRules, signal })
    if (piece === null) return null
    step = parser.next(piece)
  }
  return step.value
}

/** Reads a small file as a whole. Null if the server does not support ranges. */
const readSmallFile = (
  { url, size }: { url: string; size: number },
  { ask, retryRules, signal }: RangeTools,
): Promise<Uint8Array | null> => withRetries(() => readRange(url, 0, size, ask), { retryRules, signal })

async function readRange(url: string, at: number, end: number, ask: HubFetch): Promise<Uint8Array | null> {
  const { response, received, done } = await ask(url, { range: `bytes=${at}-${end - 1}` })
  try {
    if (response.status !== 206) {
      await response.body?.cancel()
      return null
    }
    const pieces: Uint8Array[] = []
    let length = 0
    for await (const piece of response.body ?? []) {
      received()
      length += piece.length
      // A server that sends more than the requested range is not read to the end.
      if (length > end - at) return null
      pieces.push(piece)
    }
    return Buffer.concat(pieces)
  } catch (thrown) {
    throw thrown instanceof Failure ? thrown : hubUnreachable(new URL(url), thrown)
  } finally {
    done()
  }
}

/** Larger configuration files are not read before the download. */
const maxJson = 4 << 20

interface RemoteFiles extends RangeTools {
  repository: string
  urlOf: (path: string) => string
}

/** Reads a JSON file of a repository. Undefined if there is none, and if the server does not support ranges. */
export async function readRemoteJson(
  files: readonly HubFile[],
  name: string,
  { repository, urlOf, ...tools }: RemoteFiles,
): Promise<unknown> {
  const file = files.find(({ path }) => path === name)
  if (!file || file.size === 0 || file.size > maxJson) return undefined
  const bytes = await readSmallFile({ url: urlOf(name), size: file.size }, tools)
  return bytes === null ? undefined : parseJsonFile(`${repository}/${name}`, Buffer.from(bytes).toString('utf8'))
}

/**
 * Returns what the chosen files of a repository are, from configuration files and headers only. Null if that cannot be
 * known before the download. Rejects with Failure if they are not a model, and for network errors.
 */
export async function recogniseRemote(
  { kind, main, files }: DownloadChoice,
  remote: RemoteFiles,
): Promise<Recognition | null> {
  const { repository, urlOf } = remote
  const paths = files.map(({ path }) => path)
  if (kind === 'snapshot') {
    const json = new Map<string, unknown>()
    for (const name of decidingFiles) {
      const content = await readRemoteJson(files, name, remote)
      if (content !== undefined) json.set(name, content)
      else if (paths.includes(name)) return null
    }
    return recogniseFolder({ name: repository, files: paths, json })
  }
  if (kind === 'gguf' || main === null) return null
  if (/\.(safetensors|sft)$/i.test(main)) {
    const { size } = files.find(({ path }) => path === main)!
    const header = await readRanges(parseSafetensors(main, size), { url: urlOf(main), size }, remote)
    return header && recogniseSafetensors(main, header)
  }
  if (/\.(ckpt|pt|pth)$/i.test(main))
    throw invalidValue(
      `'${main}' is a PyTorch file, which can run code when it is loaded, so infer does not download it. Use the same model as .safetensors or .gguf.`,
    )
  return /\.onnx$/i.test(main) && paths.includes(`${main}.json`) ? recogniseVoiceFile(main) : null
}

/**
 * Reads the header of a GGUF model on a server, from its files in order. Null if the server does not support ranges.
 * Rejects with Failure like `readGgufHeader`, and for network errors.
 */
export async function readRemoteHeader(
  files: readonly { name: string; url: string; size: number }[],
  tools: RangeTools,
): Promise<GgufHeader | null> {
  const contents: GgufContents[] = []
  for (const { name, url, size } of files) {
    const content = await readRanges(parseGguf(name, size), { url, size }, tools)
    if (content === null) return null
    contents.push(content)
  }
  return ggufHeader(files[0]!.name, contents)
}
