import { tmpdir } from 'node:os'
import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { Failure } from '../../core/failure.ts'
import { type Log, openLog } from '../../core/log.ts'
import { Bytes, sizeAdvice } from '../../core/quantities.ts'
import { conversationTask, type TextTask, textTasks } from '../../core/schemas/task.ts'
import { type AdapterFile, gpuUses, maxGuess } from '../../gpu/engines/gguf/options.ts'
import { flashUses } from '../../gpu/engines/gguf/sizing.ts'
import { kvTypes } from '../../gpu/engines/gguf/sizing-need.ts'
import { define as defineList } from '../engines/list.ts'
import { define as defineRemove } from '../engines/remove.ts'
import { define as defineSetup } from '../engines/setup.ts'
import { defineUpdate } from '../engines/setup-gpu.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { readCount, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/**
 * `infer engine gguf`: serves one GGUF model in its own process. `infer serve` starts the built-in engine with it.
 * If INFER_ENGINE_KEY is set, requests need it as bearer token; it is removed from the environment at once.
 */
export function define(command: Command, terminal: Terminal): void {
  const gguf = command
    .command('gguf')
    .summary('serve one GGUF file with llama.cpp')
    .description('Serves one GGUF file with llama.cpp. If INFER_ENGINE_KEY is set, requests need it as bearer token.')
    .requiredOption('--model <path>', 'the GGUF file, or the first part of a split model')
    .requiredOption('--id <id>', 'the model id in its API')
    .option('--task <task>', `task of the model, repeatable: ${textTasks.join(', ')}`, collectTasks)
    .option('--socket <path>', 'listen on a Unix socket')
    .option('--port <number>', 'listen on this port of 127.0.0.1', readCount(0, 65_535))
    .option('--threads <count>', 'processor threads; default: as many as this process may use', readCount(1, 1024))
    .option('--parallel <count>', 'concurrent chats, each with its own context', readCount(1, 256))
    .option('--context <tokens>', 'maximum length of prompt and answer together', readCount(16, 2 ** 24))
    .addOption(new Option('--gpu <use>', 'device to compute on').choices(gpuUses).default('auto'))
    .option('--backends <folder>', 'folder that contains the GPU builds, below node_modules')
    .option('--gpu-layers <count>', 'layers on the GPU; default: as many as fit', readCount(0, 4096))
    .addOption(
      new Option('--flash-attention <use>', 'less memory for long contexts').choices(flashUses).default('auto'),
    )
    .addOption(new Option('--kv-type <type>', 'number format of the KV cache').choices(kvTypes).default('f16'))
    .option('--batch <tokens>', 'batch size; default: 512', readCount(32, 4096))
    .option(
      '--guess <tokens>',
      'guess up to this many tokens from repeated text; default: none',
      readCount(1, maxGuess),
    )
    .option('--memory <size>', 'memory limit, such as 12GiB; default: the free memory', readBytes)
    .option('--no-mmap', 'read the file instead of mapping it into memory')
    .option('--mlock', 'keep the model from being swapped out')
    .option(
      '--adapter <name=scale=path>',
      'a LoRA adapter that requests name as their model, repeatable',
      collectAdapters,
    )
    .option('--conversations <folder>', 'save the memory of conversations here; default: save none')
    .action(({ task, threads, backends, adapter: adapters, ...options }) =>
      runEngine(terminal, async (key, log) => {
        const { cpuDevice } = await import('../../gpu/devices/cpu.ts')
        const { runGgufEngine } = await import('../../gpu/engines/gguf/engine.ts')
        const { findEngineBackend } = await import('../../gpu/engines/gguf/find-engine-backend.ts')
        const chosen = await findEngineBackend(options.gpu, backends, terminal.environment, log)
        const settings = {
          threads: threads ?? cpuDevice().cores ?? 1,
          tasks: task ?? [conversationTask],
          adapters,
          key,
        }
        await runGgufEngine({ ...options, ...chosen, ...settings }, { log })
      }),
    )
  command
    .command('try', { hidden: true })
    .summary('compute one token with a backend')
    .description(
      'Computes one token with a backend of llama.cpp and prints the device that it used, as JSON. The process may crash.',
    )
    .addOption(new Option('--gpu <use>', 'the backend').choices(['off', 'cuda', 'vulkan']).makeOptionMandatory())
    .option('--backends <folder>', 'folder that contains the GPU builds, below node_modules')
    .option('--list', 'only list the devices of the Vulkan backend')
    .action(async ({ gpu, backends, list }) => {
      if (list) {
        const { listDevices } = await import('../../gpu/engines/gguf/list-devices.ts')
        return listDevices(backends, devices => terminal.print(JSON.stringify({ devices })))
      }
      const { tryBackend } = await import('../../gpu/engines/gguf/try-backend.ts')
      terminal.print(JSON.stringify(await tryBackend(gpu, backends)))
    })
  command
    .command('unpack', { hidden: true })
    .summary('extract the files that engines need')
    .description('Extracts the files inside this program that engines need, to where engines read them.')
    .action(async () => {
      const { unpack } = await import('../../core/assets.ts')
      unpack()
    })
  command
    .command('pool', { hidden: true })
    .summary('run engines of a server on another machine')
    .description('Runs engines of a server on another machine, which starts it over ssh and talks to it in frames.')
    .requiredOption('--folder <path>', 'folder of the engines')
    .requiredOption('--orphan-grace <ms>', 'milliseconds for which engines run on without a server', readCount(0, 1e10))
    .action(async ({ folder, orphanGrace }) => {
      const { runPoolAgent } = await import('../../gpu/pool-agent.ts')
      const { stdin: input, stdout: output } = process
      await runPoolAgent({ folder, graceMs: orphanGrace, input, output, log: openLog('warn') })
    })
  withExamples(gguf, [
    ['infer engine gguf --model qwen3-8b.gguf --id qwen3-8b --port 9001 --threads 8', 'a chat model on port 9001'],
    ['infer engine gguf --model m.gguf --id m --port 9001 --kv-type q8_0', 'the KV cache in half the memory'],
  ])
  defineDemo(command, terminal)
  defineEspeak(command.command('espeak'), terminal)
  defineSetup(command.command('setup'), terminal)
  defineList(command.command('list'), terminal)
  defineUpdate(command.command('update'), terminal)
  defineRemove(command.command('remove'), terminal)
  withExamples(command, [
    ['infer engine setup gpu', 'let the built-in engine use the GPUs'],
    ['infer engine setup speech', 'install speech and transcription'],
    ['infer engine gguf --help', 'the built-in engine'],
    ['infer engine demo --help', 'the demo engine, which needs no model'],
  ])
}

/** Runs an engine with the key of its API, which it removes from the environment. A refused setting is wrong usage. */
async function runEngine(terminal: Terminal, run: (key: string | undefined, log: Log) => Promise<void>): Promise<void> {
  const key = terminal.environment.INFER_ENGINE_KEY
  delete terminal.environment.INFER_ENGINE_KEY
  try {
    await run(key, openLog('info'))
  } catch (thrown) {
    throw thrown instanceof Failure && thrown.code === 'invalid_value' ? usageFailure(thrown.message) : thrown
  }
}

/** `infer engine demo`: makes images and videos without a model. `infer serve` starts the demo engine with it. */
function defineDemo(command: Command, terminal: Terminal): void {
  const demo = command
    .command('demo')
    .summary('make images, videos and speech for tests, without a model')
    .description(
      'Draws the prompt as text over a pattern made from the seed, in files of the requested size and length, and speaks texts as tones that a program can recognize. It contains no model: use it to build and test programs that use one. Videos need ffmpeg. If INFER_ENGINE_KEY is set, requests need it as bearer token.',
    )
    .option('--id <id>', 'the model id in its API', 'infer/demo')
    .option('--socket <path>', 'listen on a Unix socket')
    .option('--port <number>', 'listen on this port of 127.0.0.1', readCount(0, 65_535))
    .option('--sound-only', 'offer speech only, without images and videos', false)
    .option('--step-ms <count>', 'minimum milliseconds per step', readCount(0, 60_000), 10)
    .option('--ffmpeg <program>', 'the ffmpeg program', 'ffmpeg')
    .action(options =>
      runEngine(terminal, async (key, log) => {
        const { runDemoEngine } = await import('../../gpu/engines/demo/engine.ts')
        await runDemoEngine({ ...options, folder: terminal.environment.INFER_ENGINE_FOLDER ?? tmpdir(), key }, { log })
      }),
    )
  withExamples(demo, [
    ['infer engine demo --port 9002', 'on port 9002'],
    ['infer engine demo --port 9002 --step-ms 500', 'slowly, to watch the progress'],
  ])
}

function collectTasks(text: string, before: TextTask[] | undefined): TextTask[] {
  const task = textTasks.find(one => one === text)
  if (!task) throw usageFailure(`There is no task '${text}'. Tasks: ${textTasks.join(', ')}.`)
  return [...(before ?? []), task]
}

function collectAdapters(text: string, before: AdapterFile[] | undefined): AdapterFile[] {
  const [, name, scale, path] = /^([^=]+)=(-?[\d.]+)=(.+)$/.exec(text) ?? []
  if (name === undefined || path === undefined || Number.isNaN(Number(scale)))
    throw usageFailure(
      `'${text}' is no adapter. Write its name, its scale and its file: support=1=/models/support.gguf`,
    )
  return [...(before ?? []), { name, scale: Number(scale), path }]
}

function readBytes(text: string): number {
  const size = Bytes.safeParse(/^\d+$/.test(text) ? Number(text) : text)
  if (!size.success) throw new InvalidArgumentError(sizeAdvice(text))
  return size.data
}

/** `infer engine espeak`: serves espeak-ng. `infer serve` starts the engine `espeak-ng` with it. */
function defineEspeak(command: Command, terminal: Terminal): void {
  command
    .summary('serve the program espeak-ng as a speech API')
    .description(
      "Serves the installed program espeak-ng as OpenAI's speech route. If INFER_ENGINE_KEY is set, requests need it as bearer token.",
    )
    .option('--id <id>', 'the model id in its API', 'espeak-ng')
    .option('--socket <path>', 'listen on a Unix socket')
    .option('--port <number>', 'listen on this port of 127.0.0.1', readCount(0, 65_535))
    .option('--program <path>', 'the espeak-ng program', 'espeak-ng')
    .action(options =>
      runEngine(terminal, async (key, log) => {
        const { runEspeakEngine } = await import('../../gpu/engines/espeak/engine.ts')
        await runEspeakEngine({ ...options, key }, { log })
      }),
    )
  withExamples(command, [['infer engine espeak --port 9003', 'on port 9003']])
}
