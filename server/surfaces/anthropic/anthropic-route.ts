import { anthropicErrors } from './errors.ts'

/** What all routes of the Anthropic-compatible API have in common. */
export const anthropicRoute = {
  tag: 'Anthropic',
  errors: anthropicErrors,
  // Anthropic's clients read the id of the request from this header.
  answerHeaders: ({ id }: { id: string }) => ['request-id', id],
} as const
