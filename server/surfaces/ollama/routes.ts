import { Failure } from '../../../core/failure.ts'
import { namedObject, string } from '../../../core/schemas/fields.ts'
import { type OllamaChatOwners, ollamaChatRoutes } from './generate.ts'
import { ollamaModelRoutes } from './models.ts'
import { ollamaRoute } from './ollama-route.ts'
import { type OllamaPullOwners, ollamaPullRoutes } from './pull.ts'

/** The version of Ollama whose API these routes follow. Clients compare it with the one that they need. */
const followed = '0.12.0'

const Version = namedObject('OllamaVersion', 'A version.', {
  version: string('The version of Ollama whose API this follows.'),
})
const Refused = namedObject('OllamaRefused', 'There is no such answer.', {})

/** Why a call that manages models is refused, by its path. */
const refused = {
  push: ['POST', 'Models of this server are not published.'],
  create: ['POST', 'Models are configured in infer.yaml. Add one with: infer model add'],
  copy: ['POST', 'Models are configured in infer.yaml. Offer one under a second id with: infer model add --id'],
  delete: ['DELETE', 'Models are configured in infer.yaml. Remove one with: infer model remove'],
} as const

const refusal = (what: string, method: 'POST' | 'DELETE', hint: string) =>
  ollamaRoute(`${method} /ollama/api/${what}`, 'admin:write', {
    bucket: 'api',
    summary: `${method === 'DELETE' ? 'Delete' : what === 'push' ? 'Upload' : what === 'copy' ? 'Duplicate' : 'Create'} model`,
    description: `Always refused. ${hint}.`.replace(/\.\.$/, '.'),
    errorCodes: ['unsupported_parameter'],
    response: Refused,
    handle: () => {
      throw new Failure('unsupported_parameter', `/ollama/api/${what} is not supported here. ${hint}`)
    },
  })

const alive = 'Ollama is running'

/** The routes of the Ollama-compatible API. */
export const ollamaRoutes = (owners: OllamaChatOwners & OllamaPullOwners) => [
  ...ollamaChatRoutes(owners),
  ...ollamaModelRoutes(owners),
  ...ollamaPullRoutes(owners),
  ...Object.entries(refused).map(([what, [method, hint]]) => refusal(what, method, hint)),
  ollamaRoute('GET /ollama', 'public', {
    summary: 'Check liveness',
    description: `Answers \`${alive}\`, by which Ollama's clients find out whether there is a server.`,
    media: ['text/plain'],
    answer: call => call.send(200, alive, 'text/plain; charset=utf-8', ['cache-control', 'no-store']),
  }),
  ollamaRoute('GET /ollama/api/version', 'public', {
    summary: 'Get version',
    description: 'Returns the version of Ollama whose API this follows, not the version of infer.',
    response: Version,
    handle: () => ({ version: followed }),
  }),
]
