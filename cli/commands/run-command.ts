import type { Failure } from '../../core/failure.ts'
import { exitCodeOf, failureOfThrown } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { checkHelp, failureOfUsage, helpLast, isHelp, openProgram } from './program.ts'

/**
 * Runs a command line. Its output goes to the terminal, which also gets the exit code. Resolves with the failure that was
 * printed, if it failed; never rejects.
 */
export async function runCommand(args: readonly string[], terminal: Terminal): Promise<Failure | undefined> {
  let program: Awaited<ReturnType<typeof openProgram>> | undefined
  try {
    program = await openProgram(args, terminal)
    checkHelp(program, args)
    await program.parseAsync(args.length > 0 ? helpLast(args) : ['--help'], { from: 'user' })
  } catch (thrown) {
    if (isHelp(thrown)) return undefined
    const failure = (program && failureOfUsage(thrown, args, program)) ?? failureOfThrown(thrown)
    terminal.failed(failure, args.includes('--json'))
    terminal.setExitCode(exitCodeOf(failure))
    return failure
  }
  return undefined
}
