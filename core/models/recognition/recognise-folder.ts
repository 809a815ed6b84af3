import { Failure, invalidValue } from '../../failure.ts'
import { objectOf } from '../../json.ts'
import { type Operation, operationOf, tasksBy } from '../../schemas/task.ts'
import { purposeOfFolder } from '../propose.ts'
import { loraAdvice } from './lora.ts'
import { recognisePipeline } from './pipelines.ts'
import type { Recognition, SuggestedEngine } from './recognition.ts'
import { transformersShape } from './transformers-shape.ts'

type Fields = Readonly<Record<string, unknown>>

/** The facts about a folder or repository that decide what it is. */
export interface FolderFacts {
  /** Its name in messages: a path, or a repository. */
  name: string
  /** Paths of its files, relative to it. */
  files: readonly string[]
  /** Parsed contents of those of `decidingFiles` that it has. */
  json: ReadonlyMap<string, unknown>
}

/** Files whose contents `recogniseFolder` reads. */
export const decidingFiles = ['model_index.json', 'config.json', 'adapter_config.json'] as const

/** Models for which infer has no engine, by `model_type` of config.json. */
const unsupported: Readonly<Record<string, string>> = {
  musicgen: 'music',
  encodec: 'audio compression',
  wav2vec2: 'audio features',
  clap: 'audio features',
  vit: 'image classification',
  detr: 'object detection',
  sam: 'image segmentation',
  vits: 'speech of the VITS kind',
  speecht5: 'speech of the SpeechT5 kind',
  bark: 'speech of the Bark kind',
}

/** Engines of models of transformers that do not generate text, by what they do first. */
const enginesOf: Partial<Record<Operation, readonly SuggestedEngine[]>> = {
  embed: ['tei', 'vllm', 'infinity', 'sglang', 'python'],
  rerank: ['tei', 'vllm', 'infinity', 'python'],
}

const transcription = tasksBy('transcribe', 'translate')

/**
 * Returns what the model of a folder is: a pipeline of diffusers, a model of transformers, Whisper for CTranslate2, or a
 * voice. Throws Failure `invalid_value`, which says what the folder is, if no engine can run it alone.
 */
export function recogniseFolder(facts: FolderFacts): Recognition {
  const { name, files, json } = facts
  const wrong = (what: string) => invalidValue(`'${name}' ${what}`)
  if (json.has('model_index.json')) {
    const pipeline = recognisePipeline(json.get('model_index.json'))
    if (pipeline) return pipeline
    throw wrong('has a model_index.json without "_class_name", so it is not a pipeline of diffusers.')
  }
  if (json.has('adapter_config.json') && !json.has('config.json')) {
    const { base_model_name_or_path: base } = objectOf(json.get('adapter_config.json'))
    throw typeof base === 'string'
      ? wrong(`is a LoRA for ${base.slice(0, 200)}, not a model. ${loraOfFolder(base)}`)
      : invalidValue(loraAdvice(name, { base: null, isText: false }))
  }
  const voice = recogniseVoice(files, json)
  if (voice) return voice
  if (!json.has('config.json'))
    throw wrong('has no config.json, so it is not a model. Name a file, such as a .gguf or .safetensors file.')
  const config = objectOf(json.get('config.json'))
  if (typeof config._class_name === 'string')
    throw wrong(
      `is ${config._class_name.slice(0, 100)}, one part of a pipeline. Add the folder that contains model_index.json.`,
    )
  return recogniseWhisper(facts, config) ?? recogniseTransformers(wrong, facts, config)
}

const loraOfFolder = (base: string): string =>
  /diffusion|flux|wan|ltx|image|video/i.test(base)
    ? 'Add that model with the engine python, and attach the LoRA to its entry in infer.yaml: loras: [/path/to/file=1]'
    : 'Add that model first, then the LoRA as an adapter of it: infer model add <path> --adapter-of <base>.'

/** Returns what a voice in a file of ONNX is, which has its configuration beside it. `name` is its path. */
export function recogniseVoiceFile(name: string): Recognition {
  const { file: _, ...voice } = recogniseFolder({ name, files: [name, `${name}.json`], json: new Map() })
  return {
    ...voice,
    id: name
      .split('/')
      .at(-1)!
      .replace(/\.onnx$/i, ''),
  }
}

function recogniseVoice(files: readonly string[], json: FolderFacts['json']): Recognition | null {
  const speech = { tasks: tasksBy('synthesize'), because: 'it is a voice' }
  const isOnnx = files.some(path => /(^|\/)kokoro[^/]*\.onnx$/i.test(path))
  const isKokoro = isOnnx || files.some(path => /(^|\/)kokoro[^/]*\.pth$/i.test(path))
  if (isKokoro || objectOf(json.get('config.json')).istftnet !== undefined)
    return {
      ...speech,
      is: `Kokoro, a text-to-speech model${isOnnx ? ' (ONNX)' : ''}`,
      // The Python worker reads the weights of PyTorch only.
      engines: isOnnx ? ['speaches', 'kokoro-fastapi'] : ['python', 'kokoro-fastapi', 'speaches'],
    }
  const voices = files.filter(path => path.endsWith('.onnx') && files.includes(`${path}.json`))
  if (voices.length !== 1) return null
  return { ...speech, is: 'a voice for Piper', engines: ['python', 'piper', 'speaches'], file: voices[0]! }
}

function recogniseWhisper({ name, files }: FolderFacts, config: Fields): Recognition | null {
  const isConverted = files.includes('model.bin') && files.some(path => /^vocabulary\.(json|txt)$/.test(path))
  const isWhisper = config.model_type === 'whisper'
  if (!isWhisper && !(isConverted && ['suppress_ids', 'alignment_heads', 'lang_ids'].some(key => key in config)))
    return null
  const englishOnly = /\.en\b/i.test(name) || config.vocab_size === 51_864
  return {
    is: isConverted ? 'Whisper for CTranslate2' : 'Whisper, safetensors',
    tasks: englishOnly ? transcription.slice(0, 1) : transcription,
    because: englishOnly ? 'it knows English only' : 'Whisper transcribes and translates',
    engines: isConverted ? ['python', 'speaches'] : ['python', 'vllm', 'sglang'],
  }
}

function recogniseTransformers(wrong: (what: string) => Failure, { files }: FolderFacts, config: Fields): Recognition {
  const type = typeof config.model_type === 'string' ? config.model_type : ''
  const kind = unsupported[type]
  if (kind !== undefined) throw wrong(`is a model for ${kind} (${type}), for which infer has no engine.`)
  if (files.includes('model.bin'))
    throw wrong('is a model for CTranslate2 that is not Whisper, for which infer has no engine.')
  const speech = { tasks: tasksBy('synthesize'), because: 'it is a text-to-speech model' }
  if (type.startsWith('parler_tts')) return { ...speech, is: 'Parler-TTS', engines: ['python'] }
  if (/tts/.test(type)) return { ...speech, is: `a text-to-speech model (${type})`, engines: ['vllm-omni', 'vllm'] }
  const { tasks, because } = purposeOfFolder(config, { pools: files.includes('modules.json') })
  const first = operationOf(tasks[0]!)
  const shape = transformersShape(config) ?? undefined
  const length = shape?.contextLength ?? config.max_position_embeddings
  return {
    is: `a model of transformers${type === '' ? '' : ` (${type})`}${'vision_config' in config ? ' that also reads images' : ''}`,
    tasks,
    because,
    engines: enginesOf[first] ?? ['vllm', 'sglang', 'python'],
    // One process of the Python worker embeds or ranks, and computes no scores from vectors.
    tasksOn: { python: first === 'embed' ? tasks.slice(0, 1) : tasks },
    contextLength: typeof length === 'number' ? length : null,
    shape,
  }
}
