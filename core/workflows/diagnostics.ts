import { nearest } from '../nearest.ts'

/** What is wrong, or odd, about a workflow. Source of the codes: the API contract, 2.4. */
export const typeIssueCodes = [
  'type_mismatch',
  'missing_input',
  'unknown_output_path',
  'model_task_mismatch',
  'unknown_task',
  'unknown_input',
  'value_out_of_range',
  'input_param_type',
] as const
export const warningCodes = [
  'cycle',
  'edge_unknown_node',
  'node_without_model',
  'unknown_model',
  'model_disabled',
  'unknown_reference',
  'reference_not_upstream',
  'duplicate_edge',
  'self_edge',
  'undeclared_input',
  'unused_parameter',
  'invalid_reference_syntax',
  'empty_graph',
  'coerced_media_reference',
  'unknown_field',
] as const

export interface Diagnostic<Code extends string = string> {
  code: Code
  /** Whether it keeps the workflow from being executed. */
  severity: 'error' | 'warning'
  /** A sentence that names the node. */
  message: string
  node_id?: string
  /** Where in the node: `inputs.prompt`. */
  path?: string
  edge?: { from: string; to: string }
  nodes?: string[]
  expected?: string
  actual?: string
  reference?: string
  /** The name that was meant, as far as that can be guessed. */
  suggestion?: string
}
export type TypeIssue = Diagnostic<(typeof typeIssueCodes)[number]>
export type Warning = Diagnostic<(typeof warningCodes)[number]>
/** As it is found: how severe it is follows from its code. */
export type Finding<Of extends Diagnostic> = Omit<Of, 'severity'>

export interface Diagnostics {
  type_issues: TypeIssue[]
  warnings: Warning[]
}

/** Findings with which an execution is certain to fail, or to do something else than what is written. */
const blocking: ReadonlySet<string> = new Set([
  'cycle',
  'edge_unknown_node',
  'self_edge',
  'node_without_model',
  'unknown_task',
  'unknown_reference',
  'reference_not_upstream',
  'invalid_reference_syntax',
  'empty_graph',
  'missing_input',
  'unknown_model',
  'model_disabled',
  'model_task_mismatch',
  'type_mismatch',
  'value_out_of_range',
  'unknown_input',
  'unknown_output_path',
  'input_param_type',
  'undeclared_input',
])

export const severityOf = (code: string): Diagnostic['severity'] => (blocking.has(code) ? 'error' : 'warning')

/** Those for which a run is refused, before anything of it exists. */
export const blockingOf = ({ type_issues, warnings }: Diagnostics): Diagnostic[] =>
  [...warnings, ...type_issues].filter(({ severity }) => severity === 'error')

/** The member of a diagnostic that guesses what was meant; nothing where no name is near. */
export function suggested(name: string, names: Iterable<string>): { suggestion?: string } {
  const suggestion = nearest(name.slice(0, 64), names)
  return suggestion === undefined ? {} : { suggestion }
}
