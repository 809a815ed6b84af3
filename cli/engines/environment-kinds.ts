import { readAsset } from '../../core/assets.ts'

/** An environment that `infer engine setup` makes. */
export interface EnvironmentKind {
  name: 'python' | 'speech' | 'vllm' | 'sglang' | 'comfyui'
  /** Its list of requirements in gpu/worker. */
  requirements: string
  /** The lowest minor version of Python 3 for which the list is made. */
  pythonMinor: number
  /** Bytes on the disk once it is complete, with what the installation needs meanwhile. */
  bytes: number
  /** The package by whose version those of the environment are named, if it has no source. */
  library: string
  /** The program that its engine starts. */
  program: string
  /** The engines of models that may use it. */
  engines: readonly string[]
  /** Modules that must load before it counts as complete. */
  modules: readonly string[]
  /** Whether its engine is the worker of infer, and not a program of the libraries. */
  hasWorker: boolean
  /** Where its engine comes from, if that is no package of the index. */
  source?: SourceRelease
}

/** A release of a program that its maker publishes as a Git repository. */
export interface SourceRelease {
  title: string
  license: string
  /** Address of its repository. */
  repository: string
  version: string
  /** The commit of this version, for which the requirements are made. */
  commit: string
}

const comfyuiRelease: SourceRelease = {
  title: 'ComfyUI',
  license: 'GPL-3.0',
  repository: 'https://github.com/Comfy-Org/ComfyUI',
  version: '0.33.0',
  commit: '2f35f4a08176d993cded35dac3332be4f7287f41',
}

export const environmentKinds = {
  python: {
    name: 'python',
    library: 'diffusers',
    program: 'infer-worker',
    engines: ['python'],
    requirements: 'lock-diffusion.txt',
    pythonMinor: 11,
    bytes: 9e9,
    modules: ['torch', 'diffusers', 'transformers'],
    hasWorker: true,
  },
  speech: {
    name: 'speech',
    library: 'faster-whisper',
    program: 'infer-worker',
    engines: ['python', 'piper'],
    requirements: 'lock-speech.txt',
    pythonMinor: 10,
    bytes: 1e9,
    modules: ['faster_whisper', 'piper'],
    hasWorker: true,
  },
  vllm: {
    name: 'vllm',
    library: 'vllm',
    program: 'vllm',
    engines: ['vllm'],
    requirements: 'lock-vllm.txt',
    pythonMinor: 11,
    bytes: 10e9,
    modules: ['torch', 'vllm'],
    hasWorker: false,
  },
  sglang: {
    name: 'sglang',
    library: 'sglang',
    program: 'sglang',
    engines: ['sglang'],
    requirements: 'lock-sglang.txt',
    pythonMinor: 11,
    bytes: 12e9,
    modules: ['torch', 'sglang'],
    hasWorker: false,
  },
  comfyui: {
    name: 'comfyui',
    library: '',
    program: 'infer-comfyui',
    engines: ['comfyui'],
    requirements: 'lock-comfyui.txt',
    pythonMinor: 11,
    bytes: 9e9,
    // ComfyUI is started before it counts as installed.
    modules: [],
    hasWorker: false,
    source: comfyuiRelease,
  },
} as const satisfies Record<string, EnvironmentKind>

/** The files of gpu/worker by their paths. */
export const workerFiles = (): Record<string, string> =>
  JSON.parse(Buffer.from(readAsset('worker.json')).toString('utf8')) as Record<string, string>

/** The build of PyTorch to install instead of that of the package index. */
export interface TorchBuild {
  /** Address of the index that has it. */
  index: string
  /** What the marker of the environment says about it. */
  name: string
}

const torchIndex = 'https://download.pytorch.org/whl'

/** Bytes on the disk with PyTorch for the processor only. */
export const processorOnlyBytes = 3e9

/** The build for a version of CUDA such as 12.8, or for the processor. Undefined: that of the package index. */
export function torchBuild({
  cuda,
  cpu,
  torchIndexUrl = torchIndex,
}: {
  cuda?: string
  cpu?: boolean
  torchIndexUrl?: string
}): TorchBuild | undefined {
  const name = cpu ? 'cpu' : cuda === undefined ? undefined : `cu${cuda.replace('.', '')}`
  return name === undefined ? undefined : { name, index: `${torchIndexUrl.replace(/\/+$/, '')}/${name}` }
}

/** Packages that differ between the builds, and those that only the build of the package index needs. */
const ofTorch = /^(torch|torchaudio|torchvision|triton|nvidia-[a-z0-9-]+|cuda-[a-z0-9-]+)==/

/**
 * Divides a list of requirements with hashes: those that every build needs, and the versions of PyTorch's packages, whose
 * other builds have other hashes. Pure.
 */
export function divideRequirements(list: string): { common: string; torch: string[] } {
  // A requirement is a line with the lines below it that are indented.
  const requirements = list.split(/\n(?=\S)/)
  const own = requirements.filter(one => ofTorch.test(one))
  return {
    common: requirements.filter(one => !ofTorch.test(one)).join('\n'),
    torch: own.flatMap(one => /^torch(audio|vision)?==[^\s;]+/.exec(one)?.[0] ?? []),
  }
}
