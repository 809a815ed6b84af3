import { type Command } from 'commander'
import { dataDirectory, remote } from '../core/config.ts'
import { usage } from './exit-codes.ts'
import { nameOf } from './options.ts'

/**
 * The data directory of a command that works on the files of this machine. Throws usage while INFER_URL names another
 * server, unless the directory was named: such a command would otherwise change or copy the wrong installation.
 */
export function localDirectory(command: Command, dataDir: string | undefined): string {
  if (dataDir === undefined)
    refuseRemote(command, 'works on the data directory of this machine', ', or name the directory with --data-dir')
  return dataDirectory(dataDir)
}

/** Throws usage while INFER_URL names another server. `does` says what the command does here. */
export function refuseRemote(command: Command, does: string, orElse = ''): void {
  const far = remote()
  if (far)
    throw usage(
      `'${nameOf(command)}' ${does}, but INFER_URL is set to ${far.url}. Run it on that machine, or unset INFER_URL${orElse}.`,
    )
}
