import type { Command } from 'commander'
import { z } from 'zod'
import { openClient } from '../../client/client.ts'
import { findIds } from '../../jobs/find.ts'
import { forEachId } from '../../jobs/for-each-id.ts'
import { jobPath } from '../../jobs/job.ts'
import { confirmDestructive } from '../../terminal/confirm.ts'
import { interruptible } from '../../terminal/interruption.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'

interface Options extends CommonOptions {
  yes?: boolean
}

/** `infer job delete <ids…>`: deletes jobs that have ended, with their files. */
export function define(command: Command, terminal: Terminal): void {
  const remove = withCommon(command.command('delete'))
    .summary('delete jobs that have ended, with their files')
    .description(
      'Deletes jobs that have ended: their inputs, results, logs and files. Their cost stays in the ledger. Cancel pending and running jobs first.',
    )
    .argument('<ids...>', 'the jobs, or the ends of their ids')
    .option('--yes', 'do not ask')
    .action((texts: string[], { dataDir, yes, json }: Options) =>
      interruptible(terminal, async signal => {
        const client = openClient(dataDir)
        const ids = await findIds(client, texts, signal)
        const what = ids.length === 1 ? `${ids[0]} with its files` : `${ids.length} jobs with their files`
        if (!(await confirmDestructive(`Delete ${what}?`, yes, terminal, signal))) return
        const deleted: string[] = []
        await forEachId(ids, terminal, { json, signal }, async id => {
          await client.ask({ method: 'DELETE', path: jobPath(id), answer: z.unknown(), signal })
          deleted.push(id)
          if (!json) terminal.print(`${id} is deleted.`)
        })
        if (json) terminal.json({ deleted })
      }),
    )
  withExamples(remove, [['infer job delete 7QK2M9XD --yes', 'without confirmation']])
}
