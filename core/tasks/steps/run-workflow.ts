import { Failure } from '../../failure.ts'
import { parsed } from '../../schemas/issues.ts'
import { RunWorkflowRequest, RunWorkflowResult } from '../../schemas/steps.ts'
import type { FileUrl, StepTaskRecord } from '../task.ts'
import { stepTask } from './step-task.ts'

/** The outputs of an execution as they are stored: alone, or with the files whose URLs belong at these places. */
export type StoredOutputs = RunWorkflowResult | OutputsWithFiles
interface OutputsWithFiles {
  outputs: RunWorkflowResult
  files: readonly FileAt[]
}
/** A file, and where its URL belongs in the outputs. */
export interface FileAt {
  at: readonly (string | number)[]
  id: string
  name: string
}

/** Outputs are objects by the names of nodes, so a list shows the other form. */
const hasFiles = (stored: StoredOutputs): stored is OutputsWithFiles => Array.isArray(stored.files)

/** Writes the URLs of the files to their places. Does not change what is stored. */
function shown(stored: StoredOutputs, link: FileUrl): object {
  if (!hasFiles(stored)) return stored
  const outputs = structuredClone(stored.outputs)
  for (const { at, ...file } of stored.files) {
    const last = at.at(-1)!
    const holder = at.slice(0, -1).reduce<unknown>((part, step) => (part as Record<string, unknown>)[step], outputs)
    ;(holder as Record<string | number, unknown>)[last] = link(file)
  }
  return outputs
}

/** The record of running a stored workflow as a node. The end of that execution ends its job. */
export const runWorkflowTask: StepTaskRecord = {
  ...stepTask,
  id: 'workflow/run',
  title: 'runs of workflows',
  description: 'Run a stored workflow as a node of another one. The result is what `outputs` of its execution shows.',
  request: RunWorkflowRequest,
  result: RunWorkflowResult,
  runsWorkflow: true,
  isRepeatable: () => false,
  files: {
    shown,
    ids: (stored: StoredOutputs) => (hasFiles(stored) ? stored.files.map(({ id }) => id) : []),
  },
  fill: inputs => parsed(RunWorkflowRequest, inputs),
  work() {
    throw new Failure('unsupported_task', 'workflow/run is a task of nodes of workflows only.')
  },
}
