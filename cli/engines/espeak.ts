import type { Command } from 'commander'
import { Failure } from '../../core/failure.ts'
import { openLog } from '../../core/log.ts'
import type { EspeakEngineSettings } from '../../gpu/engines/espeak/engine.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { readCount, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer engine espeak`: serves espeak-ng. `infer serve` starts the engine `espeak-ng` with it. */
export function define(command: Command, terminal: Terminal): void {
  command
    .summary('serve the program espeak-ng as a speech API')
    .description(
      "Serves the installed program espeak-ng as OpenAI's speech route. If INFER_ENGINE_KEY is set, requests need it as bearer token.",
    )
    .option('--id <id>', 'the model id in its API', 'espeak-ng')
    .option('--socket <path>', 'listen on a Unix socket')
    .option('--port <number>', 'listen on this port of 127.0.0.1', readCount(0, 65_535))
    .option('--program <path>', 'the espeak-ng program', 'espeak-ng')
    .action(async (options: Omit<EspeakEngineSettings, 'key'>) => {
      const key = terminal.environment.INFER_ENGINE_KEY
      delete terminal.environment.INFER_ENGINE_KEY
      const { runEspeakEngine } = await import('../../gpu/engines/espeak/engine.ts')
      try {
        await runEspeakEngine({ ...options, key }, { log: openLog('info') })
      } catch (thrown) {
        throw thrown instanceof Failure && thrown.code === 'invalid_value' ? usageFailure(thrown.message) : thrown
      }
    })
  withExamples(command, [['infer engine espeak --port 9003', 'on port 9003']])
}
