import { type KeptRequest, KeptStream, maxStreamBytes } from './kept-stream.ts'

/** Bytes of all kept streams. Beyond that a stream is answered as one that nobody has asked to keep. */
const maxBytes = 16 * maxStreamBytes
/** Streams of one token that are kept at a time. */
const maxPerToken = 16
/** The longest time that a client may ask for, seconds. */
const maxResumeSeconds = 600

/** Keeps the streams whose clients have asked for it, in memory. */
export function openResumableStreams() {
  const streams = new Map<string, KeptStream>()
  const perToken = new Map<string, number>()
  const all = new Set<KeptStream>()
  let bytes = 0

  /** The oldest streams that have ended are forgotten, and running ones keep half. */
  function makeRoom(): void {
    for (const stream of all) {
      if (stream.ended) stream.forget()
      else stream.trim(stream.bytes / 2)
      if (bytes <= maxBytes) return
    }
  }

  /** Forgets a stream that was read to its end, which makes room for another one; of this token, if one is named. */
  function forgetRead(tokenId?: string): void {
    for (const stream of all)
      if (stream.isRead && (tokenId === undefined || stream.tokenId === tokenId)) return stream.forget()
  }

  return {
    /** Keeps the answer to this request; undefined where there is no room for it. It can be resumed once it is named. */
    keep(exchange: KeptRequest, asked: number) {
      const { tokenId } = exchange.caller
      if ((perToken.get(tokenId) ?? 0) >= maxPerToken) forgetRead(tokenId)
      if (bytes + maxStreamBytes > maxBytes) forgetRead()
      const own = perToken.get(tokenId) ?? 0
      if (own >= maxPerToken || bytes + maxStreamBytes > maxBytes) return undefined
      const seconds = Math.min(asked, maxResumeSeconds)
      perToken.set(tokenId, own + 1)
      let name: string | undefined
      const stream = new KeptStream({
        exchange,
        resumeMs: seconds * 1_000,
        sized(change) {
          bytes += change
          if (change > 0 && bytes > maxBytes) makeRoom()
        },
        forgotten() {
          all.delete(stream)
          if (name !== undefined) streams.delete(name)
          const left = perToken.get(tokenId)! - 1
          if (left > 0) perToken.set(tokenId, left)
          else perToken.delete(tokenId)
        },
      })
      all.add(stream)
      return {
        stream,
        seconds,
        named: (jobId: string): void => {
          name = jobId
          streams.set(jobId, stream)
        },
      }
    },
    /** The stream of this request, if this token has sent it. */
    find(jobId: string, tokenId: string): KeptStream | undefined {
      const stream = streams.get(jobId)
      return stream?.tokenId === tokenId ? stream : undefined
    },
  }
}

export type ResumableStreams = ReturnType<typeof openResumableStreams>
