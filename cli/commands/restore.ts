import type { Command } from 'commander'
import { tokenObstacle } from '../installation.ts'
import { localDirectory } from '../local-only.ts'
import { withDataDir, withExamples, withJson } from '../options.ts'
import { sizeText } from '../quantities-text.ts'
import type { Terminal } from '../terminal.ts'

const doing = { copying: 'Copying', verifying: 'Verifying', swapping: 'Putting it in place' } as const

/** `infer restore <file>`: puts a backup in the place of the database, which is kept beside. No server may run. */
export function define(command: Command, terminal: Terminal): void {
  withDataDir(withJson(command))
    .description('Puts a backup in the place of the database. Stop the server first. The old database is kept beside.')
    .argument('<file>', 'made by infer backup')
    .action(async (file: string, { dataDir, json }: { dataDir?: string; json?: boolean }) => {
      const folder = localDirectory(command, dataDir)
      const { restoreDatabase } = await import('../../core/store/sqlite/admin.ts')
      const { bytes, previous } = await restoreDatabase(folder, file, step =>
        terminal.progress(`${doing[step]}…`),
      ).finally(() => terminal.progress(''))
      // The database is one half of an installation: its tokens mean nothing without the key they were made with.
      const warning = (await tokenObstacle(folder)) ?? null
      if (json) terminal.json({ bytes, previous, warning })
      else {
        terminal.print(`Restored ${sizeText(bytes)} from ${file}.`)
        if (previous !== null) terminal.remark(`The database that was there before is kept as ${previous}`)
        if (warning !== null) terminal.warn(warning)
      }
    })
  withExamples(command, [
    ['infer restore /backups/infer-monday.db', 'back to that copy'],
    ['infer restore copy.db --data-dir /var/lib/infer', 'of a service'],
  ])
}
