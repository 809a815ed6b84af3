import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { localDirectory } from '../local-only.ts'
import { withDataDir, withExamples, withJson } from '../options.ts'
import { sizeText } from '../quantities-text.ts'
import type { Terminal } from '../terminal.ts'

/** `infer backup <file>`: writes a complete, verified snapshot of the database while the server runs. */
export function define(command: Command, terminal: Terminal): void {
  withDataDir(withJson(command))
    .argument('<file>', 'a new file')
    .action(async (file: string, { dataDir, json }: { dataDir?: string; json?: boolean }) => {
      const folder = localDirectory(command, dataDir)
      const { backupDatabase } = await import('../../core/store/sqlite/admin.ts')
      const { bytes } = await backupDatabase(folder, file, (done, total) =>
        terminal.progress(`Copying ${Math.floor((100 * done) / Math.max(1, total))} %`),
      ).finally(() => terminal.progress(''))
      if (json) terminal.json({ file: resolve(file), bytes })
      else {
        terminal.print(`Copied ${sizeText(bytes)} to ${file} and verified it.`)
        terminal.remark(`Keep ${join(folder, 'master-key')} too: without it no token in the backup works.`)
      }
    })
  withExamples(command, [
    ['infer backup /backups/infer-monday.db', 'while the server runs'],
    ['infer backup copy.db --data-dir /var/lib/infer', 'the database of a service'],
  ])
}
