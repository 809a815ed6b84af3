import { open, readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { invalidValue } from '../../failure.ts'
import { type Task, tasksBy } from '../../schemas/task.ts'
import { readHeader } from '../gguf-header.ts'
import { missingFiles } from '../source-files.ts'
import { recogniseSafetensors } from './recognise-file.ts'
import { decidingFiles, recogniseFolder, recogniseVoiceFile } from './recognise-folder.ts'
import type { Recognition } from './recognition.ts'
import { isSafetensors, parseSafetensors } from './safetensors-header.ts'

/** Limits for reading a folder. */
const maxJson = 4 << 20
const maxEntries = 2000
const maxDepth = 3

/** Bytes that decide what kind of file it is. */
const headBytes = 16

/**
 * Returns what a local file or folder is: `gguf` for a GGUF file, whose header `readGgufHeader` reads, and null for a
 * file of an unknown kind. Throws Failure `invalid_value` for a damaged file, and for one that is not a model by itself.
 */
export async function readLocal(path: string): Promise<Recognition | 'gguf' | null> {
  if ((await stat(path)).isDirectory()) return readFolder(path)
  const missing = await missingFiles(path)
  if (missing !== undefined) throw invalidValue(missing)
  const whisper = await whisperTasks(path)
  if (whisper)
    return {
      is: 'Whisper for whisper.cpp',
      tasks: whisper,
      because: whisper.length > 1 ? 'Whisper transcribes and translates' : 'it knows English only',
      engines: ['whisper-server'],
      id: basename(path, '.bin').replace(/^ggml-/, 'whisper-'),
    }
  if (/\.onnx$/i.test(path)) return readVoice(path)
  const file = await open(path)
  try {
    const { size } = await file.stat()
    const head = Buffer.alloc(Math.min(headBytes, size))
    await file.read(head, 0, head.length, 0)
    if (head.toString('latin1', 0, 4) === 'GGUF') return 'gguf'
    if (isSafetensors(head, size) || /\.(safetensors|sft)$/i.test(path))
      return recogniseSafetensors(path, await readHeader(file, parseSafetensors(path, size)))
    if (/\.gguf$/i.test(path)) return 'gguf'
    refusePickle(path, head)
    return null
  } finally {
    await file.close()
  }
}

async function readFolder(path: string): Promise<Recognition> {
  const json = new Map<string, unknown>()
  for (const name of decidingFiles) {
    const text = await readSmall(join(path, name))
    if (text !== null) json.set(name, parseJsonFile(join(path, name), text))
  }
  const found = recogniseFolder({ name: path, files: await listFiles(path, '', { left: maxEntries }), json })
  // After the folder is recognized: what it is says more than what it lacks.
  const missing = await missingFiles(path)
  if (missing !== undefined) throw invalidValue(missing)
  return found
}

/** Paths of files below a folder, with links followed, because hub caches consist of them. */
async function listFiles(root: string, below: string, budget: { left: number }): Promise<string[]> {
  const files: string[] = []
  for (const name of await readdir(join(root, below)).catch((): string[] => [])) {
    if (budget.left-- <= 0) break
    const path = below === '' ? name : `${below}/${name}`
    const found = await stat(join(root, path)).catch(() => null)
    if (found?.isFile()) files.push(path)
    else if (found?.isDirectory() && path.split('/').length <= maxDepth)
      files.push(...(await listFiles(root, path, budget)))
  }
  return files
}

async function readSmall(path: string): Promise<string | null> {
  const found = await stat(path).catch(() => null)
  if (!found?.isFile()) return null
  if (found.size > maxJson) throw invalidValue(`'${path}' has ${found.size} bytes, too many to be one.`)
  return readFile(path, 'utf8')
}

/** Parses a configuration file. Throws Failure `invalid_value` that names it. */
export function parseJsonFile(path: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw invalidValue(`'${path}' cannot be read: ${(cause as Error).message}.`)
  }
}

/** A voice for Piper has its configuration beside it. */
async function readVoice(path: string): Promise<Recognition> {
  const name = basename(path)
  const files: string[] = await readdir(dirname(path)).catch(() => [])
  if (!files.includes(`${name}.json`) && !/^kokoro/i.test(name))
    throw invalidValue(
      `'${path}' is an ONNX file without '${name}.json' beside it, so it is not a voice for Piper, and infer has no other engine for ONNX files.`,
    )
  return recogniseVoiceFile(path)
}

function refusePickle(path: string, head: Buffer): void {
  const isZip = head.length >= 4 && head.readUInt32LE() === 0x04034b50
  const isPickle = head.length >= 2 && head[0] === 0x80 && head[1]! >= 2 && head[1]! <= 5
  if (/\.(ckpt|pt|pth|bin)$/i.test(path) && (isZip || isPickle))
    throw invalidValue(
      `'${path}' is a PyTorch file, which can run code when it is loaded, so infer does not take it. Use the same model as .safetensors or .gguf.`,
    )
}

/** First bytes of a model in the format of whisper.cpp, little-endian. Old language models have them too. */
const magic = 0x67676d6c
/** Vocabularies of all Whisper models. The smallest is that of models for English only, which translate nothing. */
const vocabularies = { english: 51_864, largest: 51_866 }

/** Returns the tasks of a Whisper model in the format of whisper.cpp; null for any other file. */
async function whisperTasks(path: string): Promise<Task[] | null> {
  const file = await open(path).catch(() => null)
  if (!file) return null
  try {
    const head = Buffer.alloc(8)
    const { bytesRead } = await file.read(head, 0, head.length, 0)
    if (bytesRead < head.length || head.readUInt32LE() !== magic) return null
    const vocabulary = head.readInt32LE(4)
    if (vocabulary < vocabularies.english || vocabulary > vocabularies.largest) return null
    return vocabulary === vocabularies.english ? tasksBy('transcribe') : tasksBy('transcribe', 'translate')
  } finally {
    await file.close()
  }
}
