import { join } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { readConfig } from '../../core/models/config.ts'
import { editConfigFile } from '../../core/models/config-file.ts'
import { addModel, type ModelEntry, offerToys } from '../../core/models/edit.ts'
import { traitsOf } from '../../gpu/presets/presets.ts'
import { localDirectory } from '../client/find-server.ts'
import { isOffered } from '../models/status.ts'
import { interruptible } from '../terminal/interruption.ts'
import { type CommonOptions, withExamples } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type EnvironmentKind, environmentKinds } from './environment-kinds.ts'
import { requireOneVersion, requireTorchChoice, withIndex, withTorch, withVersions } from './environment-options.ts'
import { versionFields } from './installed-environments.ts'
import { defineSetupReleases } from './releases/define-releases.ts'
import { defineSetupComfyui } from './setup-comfyui.ts'
import { defineSetupGpu } from './setup-gpu.ts'
import { placeSpeechModels } from './speech-models.ts'

interface Options extends CommonOptions {
  cuda?: string
  cpu?: true
  indexUrl?: string
  torchIndexUrl?: string
  config?: string
  release?: string
  beside?: true
  events?: true
}

/** `infer engine setup`: installs the backend for GPUs, an engine of its maker's releases, or a Python environment. */
export function define(command: Command, terminal: Terminal): void {
  command
    .summary('install the backend for GPUs, or an engine')
    .description(
      'With gpu, installs the backend with which the built-in engine uses the GPUs. With llama-server and sd-server, installs the program that its maker publishes, and with comfyui ComfyUI from its repository. Otherwise makes a Python environment with tested versions of the libraries, in engines of the data directory, with uv or with python3 and its modules venv and pip. A new version is made beside the one in use and tried, and running engines keep theirs. An interrupted setup is continued by the same command. Proxies and indexes are those of uv and pip: HTTPS_PROXY, UV_DEFAULT_INDEX, PIP_INDEX_URL.',
    )
  defineSetupGpu(command.command('gpu'), terminal)
  defineSetupReleases(command, terminal)
  const python = withVersions(withTorch(withIndex(command.command('python'))))
    .summary('images, videos, embeddings and chat by PyTorch')
    .description(
      'Installs PyTorch, diffusers and transformers for models with `engine: python`. Takes about 9 GB on the disk, and 3 GB with --cpu.',
    )
    .action(options => run(environmentKinds.python, options, python, terminal))
  const speech = withVersions(withIndex(command.command('speech')))
    .summary('speech and transcription, with two small models')
    .description(
      'Installs faster-whisper and Piper (GPL-3.0) with two small models for English, and adds these to infer.yaml: local/piper-joe speaks and local/whisper-tiny.en transcribes. Takes about 1 GB on the disk.',
    )
    .action(options => run(environmentKinds.speech, options, speech, terminal))
  for (const [kind, title] of servers) {
    const own = withVersions(withIndex(command.command(kind.name)))
      .summary(`install ${title}, for many requests at a time on GPUs`)
      .description(
        `Installs ${title} with PyTorch for CUDA, in versions with which infer was made. Takes about ${sizeText(kind.bytes)} on the disk. Models with \`engine: ${kind.name}\` use it before one that is on the PATH.`,
      )
      .action(options => run(kind, options, own, terminal))
    withExamples(own, [
      [`infer engine setup ${kind.name}`, 'install, or continue an interrupted installation'],
      [`infer engine setup ${kind.name} --release <version>`, 'go back to an installed version'],
      [`infer engine setup ${kind.name} --index-url https://pypi.example.com/simple`, 'from an index of your own'],
    ])
  }
  defineSetupComfyui(command, terminal)
  withExamples(python, [
    ['infer engine setup python', 'with a GPU'],
    ['infer engine setup python --cuda 12.8', 'for a driver of CUDA 12.8'],
    ['infer engine setup python --cpu', 'without a GPU, in a third of the space'],
  ])
  withExamples(speech, [
    ['infer engine setup speech', 'install, and offer both models'],
    ['infer engine setup speech --index-url https://pypi.example.com/simple', 'from an index of your own'],
  ])
  withExamples(command, [
    ['infer engine setup gpu', 'let the built-in engine use the GPUs'],
    ['infer engine setup llama-server', 'images, audio and tools with llama.cpp'],
    ['infer engine setup speech', 'speech and transcription on any machine'],
    ['infer engine setup python', 'images and videos on a GPU'],
    ['infer engine setup vllm', 'models from a hub for many users'],
  ])
}

/** Engines that are programs of their libraries. */
const servers = [
  [environmentKinds.vllm, 'vLLM'],
  [environmentKinds.sglang, 'SGLang'],
] as const

async function run(kind: EnvironmentKind, options: Options, command: Command, terminal: Terminal): Promise<void> {
  const dataDir = localDirectory(command, options.dataDir)
  requireTorchChoice(options)
  const { release, cuda, cpu, indexUrl } = options
  requireOneVersion({ release, cuda, cpu, indexUrl })
  const config = options.config ?? join(dataDir, 'infer.yaml')
  // A wrong file is reported before the download.
  readConfig(config, options.config !== undefined)
  const { installShown, printInstalled } = await import('./install-shown.ts')
  await interruptible(terminal, async signal => {
    const installed = await installShown(kind, { ...options, config, dataDir }, terminal, signal)
    const models = kind.name === 'speech' ? placeSpeechModels(installed.packages, dataDir) : []
    const added = offer(models, config)
    const offered = await areOffered(models, dataDir, signal)
    if (options.json)
      return terminal.json({
        environment: { name: kind.name, path: installed.folder, ...versionFields(installed) },
        models: models.map(({ id }) => ({ id, added: added.includes(id) })),
        config,
        offered,
      })
    await printInstalled(kind, installed, terminal)
    if (kind.name === 'python')
      return terminal.print('Add models with `engine: python` to infer.yaml. See: infer help images-and-video')
    if (!kind.hasWorker)
      return terminal.print(`Add models with \`engine: ${kind.name}\` to infer.yaml. See: infer help engines`)
    for (const { id } of models)
      terminal.print(added.includes(id) ? `Added '${id}' to ${config}.` : `'${id}' is offered already.`)
    if (offered === false)
      terminal.warn(
        'The server does not offer the models yet. It may read another file (see --config), or its log has the reason: infer logs',
      )
    if (offered === null) terminal.print('Start the server with: infer serve. Then:')
    terminal.print('infer speak "It works." --model local/piper-joe --out hello.wav')
    terminal.print('infer transcribe hello.wav --model local/whisper-tiny.en')
  })
}

/** Adds the models that infer.yaml does not list yet, and returns their ids. */
function offer(models: readonly ModelEntry[], config: string): string[] {
  const added: string[] = []
  if (models.length === 0) return added
  editConfigFile(
    config,
    (text, name) => {
      const { models: known } = readConfig(config, false)
      added.length = 0
      let edited = known.length === 0 ? offerToys(text, name) : text
      for (const entry of models) {
        if (known.some(({ id }) => id === entry.id)) continue
        edited = addModel(edited, entry, name)
        added.push(entry.id)
      }
      return added.length > 0 ? edited : text
    },
    traitsOf,
  )
  return added
}

/** Whether the running server offers all of these; null when none runs. */
async function areOffered(
  models: readonly ModelEntry[],
  dataDir: string,
  signal: AbortSignal,
): Promise<boolean | null> {
  for (const { id } of models) {
    const offered = await isOffered(id, dataDir, signal).catch((thrown: unknown) => {
      signal.throwIfAborted()
      if (thrown instanceof Error) return false
      throw thrown
    })
    if (offered !== true) return offered ?? null
  }
  return true
}
