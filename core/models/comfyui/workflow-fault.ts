import { existsSync, readFileSync, statSync } from 'node:fs'
import { Failure } from '../../failure.ts'
import type { Model } from '../model.ts'
import { mappingFault } from './mapping-fault.ts'
import { maxWorkflowBytes, parseWorkflow, type Workflow } from './workflow.ts'

/** Reads a workflow file. Throws Failure `invalid_value` that names the file. For the configuration, not for requests. */
export function readWorkflowFile(path: string): Workflow {
  let text: string
  try {
    if (statSync(path).size > maxWorkflowBytes)
      throw new Error(`it has more than ${maxWorkflowBytes >> 20} MiB, so it is not a workflow`)
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new Failure('invalid_value', `The workflow ${path} cannot be read: ${(cause as Error).message}.`)
  }
  return parseWorkflow(text, path)
}

/**
 * Returns why the workflow of a model cannot be used, as a sentence; undefined for models without a workflow, and if it
 * can. Reads the file; one that is missing fails the jobs, as a missing model file does.
 */
export function workflowFault(model: Model): string | undefined {
  if (!model.comfyui) return undefined
  if (model.source === undefined) return "'comfyui' needs 'source', the file of the workflow in API format."
  if (!existsSync(model.source)) return undefined
  try {
    const fault = mappingFault(readWorkflowFile(model.source), model)
    return fault === undefined ? undefined : `The workflow ${model.source} does not fit: ${fault}`
  } catch (thrown) {
    return Failure.from(thrown).message
  }
}
