import { type Command } from 'commander'
import { dataDirectory, remoteServer } from '../../core/config.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { commandName } from '../terminal/options.ts'

/**
 * Returns the data directory for a command that works on local files. Throws usage while INFER_URL is set, unless
 * `--data-dir` is given: the command would otherwise change or copy the wrong installation.
 */
export function localDirectory(command: Command, dataDir: string | undefined): string {
  if (dataDir === undefined)
    refuseRemote(command, 'works on the data directory of this machine', ', or name the directory with --data-dir')
  return dataDirectory(dataDir)
}

/** Throws usage while INFER_URL is set. `does` completes the message: what the command does. */
export function refuseRemote(command: Command, does: string, orElse = ''): void {
  const server = remoteServer()
  if (server)
    throw usageFailure(
      `'${commandName(command)}' ${does}, but INFER_URL is set to ${server.url}. Run it on that machine, or unset INFER_URL${orElse}.`,
    )
}
