import { join } from 'node:path'
import type { Command } from 'commander'
import { dataDirectory } from '../../../core/config.ts'
import { readConfig } from '../../../core/models/config.ts'
import { defaultModels } from '../../../core/models/defaults.ts'
import { openRegistry } from '../../../core/models/registry.ts'
import { requiredLabel } from '../../../core/schemas/region.ts'
import { diagnose } from '../../../core/workflows/diagnose.ts'
import { blockingOf, type Diagnostic, type Diagnostics } from '../../../core/workflows/diagnostics.ts'
import { offerOf } from '../../../core/workflows/offer.ts'
import { openClient } from '../../client/client.ts'
import { hasServer } from '../../server/with-server.ts'
import { exitCodes } from '../../terminal/exit-codes.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { readWorkflowFile, type WorkflowDocument } from '../../workflows/document.ts'
import { positionOfFinding, positionsIn } from '../../workflows/finding-position.ts'
import { refuseErrors, Validation } from '../../workflows/workflow.ts'

/** `infer workflow check <file>`: validates a workflow file. */
export function define(command: Command, terminal: Terminal): void {
  const check = withCommon(command.command('check'))
    .summary('validate a workflow file')
    .description(
      'Validates a workflow file: fields, graph, references, models, voices and sizes that a model does not have, and the types of inputs. Uses the models of the server, or those of infer.yaml if no server runs. Each finding has file, line and column. Exits with 65 when the workflow would fail; warnings go to standard error.',
    )
    .argument('<file>', 'the workflow, JSON or YAML')
    .action(async (path: string, { dataDir, json }: CommonOptions) => {
      const { document, positionOf } = readWorkflowFile(path)
      const diagnostics = await diagnosed(document, dataDirectory(dataDir))
      if (json) {
        const valid = blockingOf(diagnostics).length === 0
        const placed = <F extends Diagnostic>(found: F) => ({
          ...found,
          ...positionOfFinding(found, document, positionOf),
        })
        const { type_issues, warnings } = diagnostics
        terminal.json({
          valid,
          diagnostics: { type_issues: type_issues.map(placed), warnings: warnings.map(placed) },
        })
        if (!valid) terminal.setExitCode(exitCodes.data)
        return
      }
      refuseErrors(terminal, diagnostics, { placeOf: positionsIn(path, document, positionOf) })
      const count = Object.keys(document.dag.nodes).length
      terminal.print(`${path} can be run: ${count === 1 ? 'one node' : `${count} nodes`}.`)
    })
  withExamples(check, [['infer workflow check story.yaml', 'print every error with its line and column']])
}

async function diagnosed({ dag, parameters = null, region }: WorkflowDocument, dataDir: string): Promise<Diagnostics> {
  if (hasServer(dataDir)) {
    const body = { dag, parameters, ...(region === undefined ? {} : { region }) }
    const path = '/api/workflows/validate'
    return (await openClient(dataDir).ask({ method: 'POST', path, body, answer: Validation })).diagnostics
  }
  const { traitsOf } = await import('../../../gpu/presets/presets.ts')
  const config = readConfig(join(dataDir, 'infer.yaml'), false, traitsOf)
  const registry = openRegistry({ ...config, defaults: defaultModels, traits: traitsOf })
  const offer = offerOf(registry, () => true, requiredLabel(region))
  return diagnose(dag, parameters ?? undefined, offer)
}
