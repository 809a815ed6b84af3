import { type Command, InvalidArgumentError, Option } from 'commander'
import { Failure } from '../../core/failure.ts'
import { openLog } from '../../core/log.ts'
import { Bytes } from '../../core/quantities.ts'
import { type TextTask, textTasks } from '../../core/schemas/task.ts'
import type { DemoEngineSettings } from '../../gpu/engines/demo/engine.ts'
import { flashUses, type GgufEngineSettings, gpuUses } from '../../gpu/engines/gguf/options.ts'
import { kvTypes } from '../../gpu/engines/gguf/sizing-need.ts'
import { usage } from '../exit-codes.ts'
import { readCount, withExamples } from '../options.ts'
import type { Terminal } from '../terminal.ts'

interface Options extends Omit<GgufEngineSettings, 'tasks' | 'threads' | 'key'> {
  task?: TextTask[]
  threads?: number
  backends?: string
}

/**
 * `infer engine gguf`: one GGUF model as a server of its own, which is how `infer serve` starts the built-in engine.
 * INFER_ENGINE_KEY, when set, is what every request must bring; it is taken out of the environment at once.
 */
export function define(command: Command, terminal: Terminal): void {
  const gguf = command
    .command('gguf')
    .summary('serve one GGUF file with llama.cpp')
    .description('Serves one GGUF file with llama.cpp. When INFER_ENGINE_KEY is set, requests need it as bearer token.')
    .requiredOption('--model <path>', 'the GGUF file; of a split model the first part')
    .requiredOption('--id <id>', 'the name under which it answers')
    .option('--task <task>', `what it is for, repeatable: ${textTasks.join(', ')}`, collectTasks)
    .option('--socket <path>', 'listen on a Unix socket')
    .option('--port <number>', 'listen on this port of 127.0.0.1', readCount(0, 65_535))
    .option('--threads <count>', 'processor threads; as many as this process may use when left out', readCount(1, 1024))
    .option('--parallel <count>', 'chats worked on at once, each with its own context', readCount(1, 256))
    .option('--context <tokens>', 'longest prompt and answer together', readCount(16, 2 ** 24))
    .addOption(new Option('--gpu <use>', 'what computes').choices(gpuUses).default('auto'))
    .option('--backends <folder>', 'where the builds for GPUs lie, below node_modules')
    .option('--gpu-layers <count>', 'layers on the GPU; as many as fit when left out', readCount(0, 4096))
    .addOption(
      new Option('--flash-attention <use>', 'less memory for long contexts').choices(flashUses).default('auto'),
    )
    .addOption(new Option('--kv-type <type>', 'how the cache keeps its numbers').choices(kvTypes).default('f16'))
    .option('--batch <tokens>', 'computed at once; 512 when left out', readCount(32, 4096))
    .option('--memory <size>', 'memory that it may fill, such as 12GiB; what is free when left out', readBytes)
    .option('--no-mmap', 'read the file instead of mapping it into memory')
    .option('--mlock', 'keep the model from being swapped out')
    .action(async ({ task, threads, backends, ...options }: Options) => {
      const key = terminal.environment.INFER_ENGINE_KEY
      delete terminal.environment.INFER_ENGINE_KEY
      const { cpuDevice } = await import('../../gpu/devices/cpu.ts')
      const { runGgufEngine } = await import('../../gpu/engines/gguf/engine.ts')
      const { chooseBackend } = await import('../../gpu/engines/gguf/backend-choice.ts')
      try {
        const log = openLog('info')
        const chosen = await chooseBackend({ gpu: options.gpu, backends, environment: terminal.environment, log })
        await runGgufEngine(
          {
            ...options,
            ...chosen,
            threads: threads ?? cpuDevice().cores ?? 1,
            tasks: task ?? ['std/chat-completion'],
            key,
          },
          { log },
        )
      } catch (thrown) {
        throw thrown instanceof Failure && thrown.code === 'invalid_value' ? usage(thrown.message) : thrown
      }
    })
  command
    .command('try', { hidden: true })
    .summary('compute one token with a backend')
    .description('Computes one token with a backend of llama.cpp and says on what, as JSON. It may die of it.')
    .addOption(new Option('--gpu <use>', 'the backend').choices(['off', 'cuda', 'vulkan']).makeOptionMandatory())
    .option('--backends <folder>', 'where the builds for GPUs lie, below node_modules')
    .action(async ({ gpu, backends }: { gpu: 'off' | 'cuda' | 'vulkan'; backends?: string }) => {
      const { tryBackend } = await import('../../gpu/engines/gguf/trial.ts')
      terminal.print(JSON.stringify(await tryBackend(gpu, backends)))
    })
  command
    .command('unpack', { hidden: true })
    .summary('put the parts of this program on disk')
    .description('Puts the parts of this program that engines need on disk, where they read them.')
    .action(async () => {
      const { unpack } = await import('../../core/assets.ts')
      unpack()
    })
  withExamples(gguf, [
    ['infer engine gguf --model qwen3-8b.gguf --id qwen3-8b --port 9001 --threads 8', 'a chat model on port 9001'],
    ['infer engine gguf --model m.gguf --id m --port 9001 --kv-type q8_0', 'the cache in half the memory'],
  ])
  defineDemo(command, terminal)
  withExamples(command, [
    ['infer engine gguf --help', 'the built-in engine'],
    ['infer engine demo --help', 'the one that draws without a model'],
  ])
}

/** `infer engine demo`: pictures and videos without a model, which is how `infer serve` starts the demo engine. */
function defineDemo(command: Command, terminal: Terminal): void {
  const demo = command
    .command('demo')
    .summary('draw pictures and videos, and say texts in tones, without a model')
    .description(
      'Draws the prompt in type over a pattern of the seed, as files of the asked size and length, and says texts in tones that a program can hear. It knows nothing: it is for building and testing what uses a model. Videos need ffmpeg. When INFER_ENGINE_KEY is set, requests need it as bearer token.',
    )
    .option('--id <id>', 'the name under which it answers', 'infer/demo')
    .option('--socket <path>', 'listen on a Unix socket')
    .option('--port <number>', 'listen on this port of 127.0.0.1', readCount(0, 65_535))
    .option('--sound-only', 'leave out what pictures and videos need', false)
    .option('--step-ms <count>', 'milliseconds that each step takes at least', readCount(0, 60_000), 10)
    .option('--ffmpeg <program>', 'the ffmpeg program', 'ffmpeg')
    .action(async (options: Omit<DemoEngineSettings, 'key'>) => {
      const key = terminal.environment.INFER_ENGINE_KEY
      delete terminal.environment.INFER_ENGINE_KEY
      const { runDemoEngine } = await import('../../gpu/engines/demo/engine.ts')
      try {
        await runDemoEngine({ ...options, key }, { log: openLog('info') })
      } catch (thrown) {
        throw thrown instanceof Failure && thrown.code === 'invalid_value' ? usage(thrown.message) : thrown
      }
    })
  withExamples(demo, [
    ['infer engine demo --port 9002', 'on port 9002'],
    ['infer engine demo --port 9002 --step-ms 500', 'slowly, so that progress can be watched'],
  ])
}

function collectTasks(text: string, before: TextTask[] | undefined): TextTask[] {
  const task = textTasks.find(one => one === text)
  if (!task) throw usage(`There is no task '${text}'. Known are ${textTasks.join(', ')}.`)
  return [...(before ?? []), task]
}

function readBytes(text: string): number {
  const size = Bytes.safeParse(/^\d+$/.test(text) ? Number(text) : text)
  if (!size.success) throw new InvalidArgumentError('Write a size as 512MiB or 24GB.')
  return size.data
}
