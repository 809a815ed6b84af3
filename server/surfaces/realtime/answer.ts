import { WebSocketServer } from 'ws'
import { Failure, invalid } from '../../../core/failure.ts'
import { modelFor } from '../../../core/tasks/catalog.ts'
import { transcriptions } from '../../../core/tasks/transcription/transcription.ts'
import { requireOrigin } from '../../http/connection/cors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { modelsFor } from '../../work/allowed-models.ts'
import { runConnection } from './connection.ts'
import { maxSeconds, openRealtimeSession } from './session.ts'
import type { RealtimeOwners } from './transcribe-samples.ts'
import { chosenProtocol, takeSocket } from './upgrade.ts'

/** Bytes of a message: 24 s of audio at 16 kHz. */
const maxMessageBytes = 1 << 20
/** Memory that a connection is counted with: the audio that it holds, once more while it grows, and messages. */
const heldBytes = 2 * maxSeconds * 32_000 + 4 * maxMessageBytes
const task = 'std/audio-transcription'

let server: WebSocketServer | undefined

/** Returns the model that the address names; of models without a choice, the only one. */
function modelOf(exchange: ClientExchange, owners: RealtimeOwners) {
  const { query } = exchange
  const intent = query.get('intent')
  const named = query.get('model')
  if (intent !== null && intent !== 'transcription')
    throw invalid(
      'intent',
      `Sessions with the intent '${intent.slice(0, 64)}' are not offered here. Connect with ?intent=transcription.`,
    )
  if (named !== null) {
    const { id } = modelFor(transcriptions[task], named, owners.registry.catalog())
    if (owners.admission.allowed(exchange.caller, id)) return id
    throw invalid(
      'model',
      `The token '${exchange.caller.token.name}' may not use the model '${id}'.`,
      'model_not_allowed',
    )
  }
  if (intent === null)
    throw invalid(
      'intent',
      'Only transcription sessions are offered here. Connect with ?intent=transcription.',
      'missing_required_parameter',
    )
  const models = modelsFor(task, exchange, owners)
  return models.length === 1 ? models[0] : undefined
}

/** Opens a session of the Realtime API and resolves when it has ended. Throws Failure before the connection is upgraded. */
export async function answerRealtime(exchange: ClientExchange, owners: RealtimeOwners): Promise<void> {
  const { admission, config } = owners
  requireOrigin(exchange.req, exchange.origin, config.cors.origins)
  const model = modelOf(exchange, owners)
  if (exchange.streams.stopping) throw new Failure('shutting_down', 'The server is stopping. Try again in 5 s.')
  exchange.streamLimits.take(exchange)
  exchange.releaseBody = admission.holdBody({ kept: heldBytes, whileRead: 0 })
  const taken = takeSocket(exchange.req, exchange.res)
  if (!taken) throw invalid('Upgrade', 'This is a WebSocket. Connect with wss:// or ws://.')
  if (taken.socket.destroyed) return
  exchange.res.statusCode = 101
  server ??= new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: maxMessageBytes,
    handleProtocols: chosenProtocol,
  })
  const opened = server
  await new Promise<void>((resolve, reject) => {
    taken.socket.once('close', resolve)
    opened.handleUpgrade(exchange.req, taken.socket, taken.head, socket => {
      void runConnection(exchange, socket, emit => openRealtimeSession(exchange, model, emit, owners)).then(
        resolve,
        reject,
      )
    })
  })
}
