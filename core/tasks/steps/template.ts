import { parsed } from '../../schemas/issues.ts'
import { TemplateRequest, TemplateResult } from '../../schemas/steps.ts'
import type { StepTaskRecord } from '../task.ts'
import { maxCharacters, tooLarge } from './size.ts'
import { stepTask } from './step-task.ts'

const defaultSeparator = '\n'

/** The text of a template whose references are replaced. One that was a single reference to a list is that list. */
function written({ template, separator = defaultSeparator }: TemplateRequest): TemplateResult {
  if (!Array.isArray(template)) return { text: template }
  const parts: string[] = []
  let characters = 0
  for (const one of template) {
    const part = typeof one === 'string' ? one : JSON.stringify(one)
    characters += part.length + separator.length
    if (characters > maxCharacters) throw tooLarge(`more than ${maxCharacters >> 20} MiB of text`)
    parts.push(part)
  }
  return { text: parts.join(separator) }
}

/** The record of writing a text from a template. */
export const templateTask: StepTaskRecord = {
  ...stepTask,
  id: 'text/template',
  title: 'text from a template',
  description: 'Write a text with values of parameters and other nodes; lists are joined. Needs no model.',
  sample: { template: ['first', 'second'], separator: ', ' },
  request: TemplateRequest,
  result: TemplateResult,
  listSeparator: ({ separator }) => separator ?? defaultSeparator,
  fill: inputs => parsed(TemplateRequest, inputs),
  work: written,
}
