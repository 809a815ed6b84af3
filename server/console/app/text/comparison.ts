import { named } from './named.ts'

/** Texts of the page that compares two executions. */
export const comparisonText = {
  ...named('first', 'second', 'inputs', 'result', 'error', 'nodes', 'parameters'),
  title: 'Compare executions',
  about: 'What differs between two executions, node by node.',
  gone: 'One of these executions does not exist or is no longer kept.',
  swap: 'Swap them',
  versions: 'Compare the versions of the workflow',
  of: 'Property',
  columns: { ...named('id', 'workflow', 'version', 'tags', 'started', 'duration', 'cost'), status: 'State' },
  parts: { ...named('model', 'inputs', 'result', 'error', 'time', 'cost'), status: 'State' },
  differs: 'differs',
  inFirst: 'in the first,',
  inSecond: 'in the second',
  onlyFirst: 'Only in the first',
  onlySecond: 'Only in the second',
  costs: (cost: string) => `cost ${cost}`,
  same: 'No state, model, input, result or error of a node differs.',
  sameValue: 'The same in both.',
  noValue: 'Neither has one.',
  sameParameters: 'The parameters are the same.',
  long: (parts: string) => `Open it to compare: ${parts}`,
  onlyDifferent: 'Only nodes that differ',
} as const
