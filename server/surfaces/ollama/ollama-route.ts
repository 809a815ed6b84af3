import { ollamaErrors } from './errors.ts'
import { loopbackCaller } from './loopback.ts'

/** What all routes of the Ollama-compatible API have in common. */
export const ollamaRoute = {
  tag: 'Ollama',
  errors: ollamaErrors,
  formIsJson: true,
  callerWithoutToken: loopbackCaller,
} as const
