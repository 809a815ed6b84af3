import { nearest } from '../nearest.ts'

/** Codes of the findings of a validation. Source: the API contract, 2.4. */
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
  'model_outside_region',
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
  'invalid_condition',
  'constant_condition',
  'unused_default',
  'unused_join',
  'unusual_pin',
  'unknown_workflow',
  'workflow_cycle',
  'unbounded_wait',
  'unknown_approver',
] as const

export interface Diagnostic<Code extends string = string> {
  code: Code
  /** Whether it prevents the execution of the workflow. */
  severity: 'error' | 'warning'
  /** A sentence that names the node. */
  message: string
  node_id?: string
  /** The position in the node: `inputs.prompt`. */
  path?: string
  edge?: { from: string; to: string }
  nodes?: string[]
  expected?: string
  actual?: string
  reference?: string
  /** The name that was probably meant. */
  suggestion?: string
}
export type TypeIssue = Diagnostic<(typeof typeIssueCodes)[number]>
export type Warning = Diagnostic<(typeof warningCodes)[number]>
/** A diagnostic without its severity, which follows from its code. */
export type DiagnosticFinding<Of extends Diagnostic> = Omit<Of, 'severity'>

export interface Diagnostics {
  type_issues: TypeIssue[]
  warnings: Warning[]
}

/** Findings with which an execution runs as intended. All others would fail it, or make it do something else. */
const harmless: ReadonlySet<string> = new Set<Warning['code']>([
  'model_outside_region',
  'duplicate_edge',
  'unused_parameter',
  'coerced_media_reference',
  'unknown_field',
  'constant_condition',
  'unused_default',
  'unused_join',
  'unusual_pin',
  'unbounded_wait',
  'unknown_approver',
])

export const severityOf = (code: string): Diagnostic['severity'] => (harmless.has(code) ? 'warning' : 'error')

/** The diagnostics that prevent execution. */
export const blockingOf = ({ type_issues, warnings }: Diagnostics): Diagnostic[] =>
  [...warnings, ...type_issues].filter(({ severity }) => severity === 'error')

/** The `suggestion` member of a diagnostic; empty if no name is similar. */
export function suggested(name: string, names: Iterable<string>): { suggestion?: string } {
  const suggestion = nearest(name.slice(0, 64), names)
  return suggestion === undefined ? {} : { suggestion }
}
