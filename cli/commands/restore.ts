import type { Command } from '@commander-js/extra-typings'
import { tokenObstacle } from '../accounts/installation.ts'
import { localDirectory } from '../client/find-server.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'

const stepTexts = { copying: 'Copying', verifying: 'Verifying', swapping: 'Putting it in place' } as const

/** `infer restore <file>`: replaces the database by a backup and keeps the old one beside it. No server may run. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .description('Replaces the database by a backup. Stop the server first. The old database is kept beside it.')
    .argument('<file>', 'a file that infer backup wrote')
    .action(async (file, { dataDir, json }) => {
      const folder = localDirectory(command, dataDir)
      const { restoreDatabase } = await import('../../core/store/sqlite/admin.ts')
      const { bytes, previous } = await restoreDatabase(folder, file, step =>
        terminal.progress(`${stepTexts[step]}…`),
      ).finally(() => terminal.progress(''))
      // Tokens in the backup work only with the master key under which they were created.
      const warning = (await tokenObstacle(folder)) ?? null
      if (json) terminal.json({ bytes, previous, warning })
      else {
        terminal.print(`Restored ${sizeText(bytes)} from ${file}.`)
        if (previous !== null) terminal.remark(`The previous database is kept as ${previous}`)
        if (warning !== null) terminal.warn(warning)
      }
    })
  withExamples(command, [
    ['infer restore /backups/infer-monday.db', 'go back to this backup'],
    ['infer restore copy.db --data-dir /var/lib/infer', 'the database of a service'],
  ])
}
