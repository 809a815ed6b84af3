import { named } from './named.ts'

/** Texts of the form with which a workflow is run. */
export const workflowFormText = {
  ...named('run', 'inputs', 'result'),
  gone: 'There is no such workflow. Somebody may have deleted it.',
  copyLink: 'Copy the link to this form with what is entered',
  edit: 'Open in the editor',
  noInputs: 'This workflow takes no inputs.',
  readOnly: 'Your token may read workflows, and not run them: it lacks the scope user:write.',
  open: 'Open the execution',
  resultOf: (id: string) => `Result of ${id}`,
} as const
