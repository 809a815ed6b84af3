import { Failure } from '../../failure.ts'
import { parseJsonFile } from '../recognition/read-local.ts'
import { recogniseSafetensors } from '../recognition/recognise-file.ts'
import { decidingFiles, recogniseFolder, recogniseVoiceFile } from '../recognition/recognise-folder.ts'
import type { Recognition } from '../recognition/recognition.ts'
import { parseSafetensors } from '../recognition/safetensors-header.ts'
import type { DownloadChoice, HubFile } from './choose.ts'
import { type RangeTools, readRanges, readSmallFile } from './read-ranges.ts'

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
    throw new Failure(
      'invalid_value',
      `'${main}' is a PyTorch file, which can run code when it is loaded, so infer does not download it. Use the same model as .safetensors or .gguf.`,
    )
  return /\.onnx$/i.test(main) && paths.includes(`${main}.json`) ? recogniseVoiceFile(main) : null
}
