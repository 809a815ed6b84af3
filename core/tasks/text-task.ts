import type { FillContext, TextTaskRecord } from './task.ts'

/** Returns the inputs of a workflow node as the request of a text endpoint: with the model, without `stream`. */
export function requestFor(inputs: Record<string, unknown>, { model }: FillContext): Record<string, unknown> {
  const { stream: _, ...request } = { ...inputs, model: model.id } as Record<string, unknown>
  return request
}

/** What the records of most text tasks have in common. */
export const textTask = {
  runner: 'text',
  category: 'text',
  features: [],
  otherFields: {},
  modelFaults: () => [],
  takesFiles: false,
  isMediaPath: () => false,
  isRepeatable: () => true,
  fill: requestFor,
  requestAgain: (stored: object): object => stored,
} as const satisfies Partial<TextTaskRecord>
