import type { Command } from 'commander'
import { stringify } from 'yaml'
import { openClient } from '../../client/client.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import { printable } from '../../terminal/paint.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { findWorkflow } from '../../workflows/workflow.ts'

/** `infer workflow show <id|name>`: prints the definition as a file that can be run. */
export function define(command: Command, terminal: Terminal): void {
  const show = withCommon(command.command('show'))
    .summary('print a workflow as a file that can be run')
    .description(
      'Prints a workflow as YAML, which can be saved, changed, and run or created again. Prints errors and warnings on standard error.',
    )
    .argument('<workflow>', 'its id or its name')
    .action(async (text: string, { dataDir, json }: CommonOptions) => {
      const found = await findWorkflow(openClient(dataDir), text)
      if (json) return terminal.json(found)
      const { workflow, diagnostics } = found
      const { name, description, region, timeout, on_failure, parameters, dag } = workflow
      const whole = { name, description, region, timeout, on_failure, parameters, dag }
      const present = Object.entries(whole).filter(([, value]) => value !== null && value !== undefined)
      terminal.remark(`${workflow.id}, version ${workflow.version}`)
      terminal.print(printable(stringify(Object.fromEntries(present), { lineWidth: 0 })).trimEnd())
      for (const { message } of [...diagnostics.warnings, ...diagnostics.type_issues]) terminal.warn(printable(message))
    })
  withExamples(show, [
    ['infer workflow show Story > story.yaml', 'save it as a file'],
    ['infer workflow show wf_… --json', 'the response of the API'],
  ])
}
