import type { Command } from 'commander'
import { Failure } from '../../core/failure.ts'
import { openLog } from '../../core/log.ts'
import { type Task, tasks } from '../../core/tasks/tasks.ts'
import { usage } from '../exit-codes.ts'
import { readCount, withExamples } from '../options.ts'
import type { Terminal } from '../terminal.ts'

interface Options {
  model: string
  id: string
  task?: Task[]
  socket?: string
  port?: number
  threads?: number
  parallel: number
  context?: number
  gpu: 'auto' | 'off'
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
    .option('--task <task>', `what it is for, repeatable: ${tasks.join(', ')}`, collectTasks)
    .option('--socket <path>', 'listen on a Unix socket')
    .option('--port <number>', 'listen on this port of 127.0.0.1', readCount(0, 65_535))
    .option('--threads <count>', 'processor threads; as many as this process may use when left out', readCount(1, 1024))
    .option('--parallel <count>', 'chats worked on at once', readCount(1, 256), 1)
    .option('--context <tokens>', 'longest prompt and answer together', readCount(16, 2 ** 24))
    .option('--gpu <use>', 'auto or off', readGpu, 'auto')
    .action(async ({ task, threads, ...options }: Options) => {
      const key = terminal.environment.INFER_ENGINE_KEY
      delete terminal.environment.INFER_ENGINE_KEY
      const { cpuDevice } = await import('../../gpu/devices/cpu.ts')
      const { runGgufEngine } = await import('../../gpu/engines/gguf/engine.ts')
      try {
        await runGgufEngine(
          { ...options, threads: threads ?? cpuDevice().cores ?? 1, tasks: task ?? ['std/chat-completion'], key },
          { log: openLog('info') },
        )
      } catch (thrown) {
        throw thrown instanceof Failure && thrown.code === 'invalid_value' ? usage(thrown.message) : thrown
      }
    })
  withExamples(gguf, [
    ['infer engine gguf --model qwen3-8b.gguf --id qwen3-8b --port 9001 --threads 8', 'a chat model on port 9001'],
  ])
  withExamples(command, [['infer engine gguf --help', 'the built-in engine']])
}

function collectTasks(text: string, before: Task[] | undefined): Task[] {
  const task = tasks.find(one => one === text)
  if (!task) throw usage(`There is no task '${text}'. Known are ${tasks.join(', ')}.`)
  return [...(before ?? []), task]
}

function readGpu(text: string): 'auto' | 'off' {
  if (text !== 'auto' && text !== 'off') throw usage(`--gpu is auto or off, not '${text}'.`)
  return text
}
