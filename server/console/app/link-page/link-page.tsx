import { useEffect, useState } from 'react'
import type { Schema } from '../api/schema.ts'
import { dateText } from '../components/format.ts'
import { Failed, Loading } from '../components/page.tsx'
import { Words } from '../pages/chat/message/words.tsx'
import { Mark } from '../shell/mark.tsx'
import { linkPageText as text } from '../text/link-page.ts'
import { readLinked } from './read-linked.ts'

type Shared = Schema<'SharedConversation'>
type SharedMessage = Shared['messages'][number]

/** The page behind a link to a conversation: what was said, and nothing to do. `path`: that of the link. */
export function LinkPage({ path }: { path: string }) {
  const [shared, show] = useState<Shared>()
  const [failure, fail] = useState<Error>()
  useEffect(() => void readLinked(path).then(show, fail), [path])
  return (
    <main className="mx-auto max-w-3xl space-y-4 p-4 sm:py-8">
      {shared ? <Conversation shared={shared} /> : failure ? <NotShown failure={failure} /> : <Loading lines={6} />}
    </main>
  )
}

const NotShown = ({ failure }: { failure: Error }) => (
  <>
    <Heading>{text.title}</Heading>
    <Failed failure={failure} />
  </>
)

const Heading = ({ children }: { children: string }) => (
  <h1 className="flex items-center gap-2 text-xl font-semibold tracking-tight break-words">
    <Mark className="size-6 shrink-0" />
    {children}
  </h1>
)

function Conversation({ shared: { title, expires_at, messages } }: { shared: Shared }) {
  const shown = title || text.untitled
  return (
    <>
      <title>{`${shown} · infer`}</title>
      <Heading>{shown}</Heading>
      <p className="text-muted text-xs">{text.until(dateText(expires_at))}</p>
      {messages.length === 0 && <p className="text-muted py-8 text-center">{text.empty}</p>}
      {messages.map((message, at) => (
        <MessageOf key={at} message={message} />
      ))}
    </>
  )
}

function MessageOf({ message: { role, text: words, model, files } }: { message: SharedMessage }) {
  const isAnswer = role === 'assistant'
  const author = isAnswer ? (model ?? text.model) : text.author
  return (
    <article aria-label={author} className={`flex min-w-0 flex-col gap-2 py-1 ${isAnswer ? '' : 'items-end'}`}>
      <p className={isAnswer ? 'text-muted text-xs font-medium' : 'sr-only'}>{author}</p>
      {files.map((file, at) => (
        <FileOf key={at} file={file} />
      ))}
      {words !== '' && (
        <div className={isAnswer ? 'min-w-0' : 'bg-raised max-w-[90%] rounded-lg px-3 py-2'}>
          <Words text={words} growing={false} plain={!isAnswer} />
        </div>
      )}
    </article>
  )
}

/** An image; of another file only its name. */
function FileOf({ file: { name, url } }: { file: SharedMessage['files'][number] }) {
  const [isGone, setGone] = useState(false)
  if (url !== null && !isGone)
    return (
      <img
        src={url}
        alt={text.image(name)}
        onError={() => setGone(true)}
        className="border-line max-h-96 max-w-full rounded-md border"
      />
    )
  return (
    <p className="border-line bg-surface text-muted max-w-full rounded-md border px-2 py-1.5 text-xs break-all">
      {isGone ? text.imageGone(name) : text.file(name)}
    </p>
  )
}
