import { join } from 'node:path'
import type { SuggestedEngine } from '../../core/models/recognition/recognition.ts'
import type { Task } from '../../core/schemas/task.ts'
import { findProgram } from '../../gpu/launcher/program.ts'

interface EngineProgram {
  /** The program that must be found; absent for an engine that is started by a configured command. */
  program?: string
  /** How to install it, as a sentence. */
  install: string
  /** A smaller environment that has the program too, for models that speak or transcribe. */
  forSpeech?: { environment: string; install: string }
}

const setUp = (name: string) => `Install it with: infer engine setup ${name}`
const onPath = (name: string, program: string) => `Install ${name}, so that '${program}' is on the PATH.`

/** How the engines that infer can suggest are found on this machine. `gguf` is built in. */
const programs: Readonly<Record<Exclude<SuggestedEngine, 'gguf'>, EngineProgram>> = {
  'llama-server': { program: 'llama-server', install: onPath('llama.cpp', 'llama-server') },
  vllm: { program: 'vllm', install: 'Install it with: pip install vllm' },
  'vllm-omni': { program: 'vllm', install: 'Install it with: pip install vllm vllm-omni' },
  sglang: { program: 'sglang', install: "Install it with: pip install 'sglang[all]'" },
  'sglang-diffusion': { program: 'sglang', install: "Install it with: pip install 'sglang[diffusion]'" },
  tei: {
    program: 'text-embeddings-router',
    install: onPath('Text Embeddings Inference', 'text-embeddings-router'),
  },
  infinity: { program: 'infinity_emb', install: "Install it with: pip install 'infinity-emb[all]'" },
  'whisper-server': { program: 'whisper-server', install: onPath('whisper.cpp', 'whisper-server') },
  'sd-server': { program: 'sd-server', install: onPath('stable-diffusion.cpp', 'sd-server') },
  python: {
    program: 'infer-worker',
    install: setUp('python'),
    forSpeech: { environment: 'speech', install: setUp('speech') },
  },
  comfyui: { install: "Install ComfyUI, and give its start as 'command' in infer.yaml." },
  speaches: { install: 'Install speaches. See: infer help engines' },
  'kokoro-fastapi': { install: 'Install Kokoro-FastAPI. See: infer help engines' },
  piper: { program: 'piper', install: 'Install it with: pip install piper-tts' },
}

/** What decides whether an engine is installed. */
export interface InstalledWhere {
  dataDir: string
  /** The PATH of the environment. */
  path: string
  /** Tasks of the model. */
  tasks: readonly Task[]
}

/** Returns whether the program of an engine is on the PATH or in an environment of `infer engine setup`. */
export function isInstalled(engine: SuggestedEngine, { dataDir, path, tasks }: InstalledWhere): boolean {
  if (engine === 'gguf') return true
  const { program, forSpeech } = programs[engine]
  if (program === undefined) return false
  const environments = [engine, ...(forSpeech && isSpeech(tasks) ? [forSpeech.environment] : [])]
  const folders = environments.map(name => join(dataDir, 'engines', name, 'bin'))
  return findProgram(program, [...folders, path].join(':')) !== undefined
}

export interface FoundEngine {
  engine: SuggestedEngine
  /** Path of its program; undefined if it is not installed. */
  path: string | undefined
}

/** Returns the engines that are installed as programs, on the PATH or in an environment, and those that are not. */
export function findEngines({ dataDir, path }: Omit<InstalledWhere, 'tasks'>): FoundEngine[] {
  return Object.entries(programs).flatMap(([name, { program, forSpeech }]) => {
    if (program === undefined) return []
    const environments = [name, ...(forSpeech ? [forSpeech.environment] : [])]
    const folders = environments.map(one => join(dataDir, 'engines', one, 'bin'))
    return { engine: name as SuggestedEngine, path: findProgram(program, [...folders, path].join(':')) }
  })
}

/** Returns how to install an engine, as a sentence. */
export function installAdvice(engine: SuggestedEngine, tasks: readonly Task[]): string {
  if (engine === 'gguf') return ''
  const { install, forSpeech } = programs[engine]
  const how = forSpeech && isSpeech(tasks) ? forSpeech.install : install
  return `The engine '${engine}' is not installed on this machine. ${how}`
}

const speechTasks: ReadonlySet<Task> = new Set<Task>([
  'std/audio-speech',
  'std/audio-transcription',
  'std/audio-translation',
])
const isSpeech = (tasks: readonly Task[]): boolean => tasks.some(task => speechTasks.has(task))
