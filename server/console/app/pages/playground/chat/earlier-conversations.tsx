import { useState } from 'react'
import { Time } from '../../../components/time.tsx'
import { playgroundText } from '../../../text/playground.ts'
import { type Earlier, earlierThan } from './kept-conversations.ts'

const text = playgroundText.chat

interface EarlierProps {
  token: string
  /** Where the shown conversation is kept. */
  current: () => string
  open: (key: string) => void
}

/** The other conversations that this browser keeps, such as those of other tabs; read when a person opens the list. */
export function EarlierConversations({ token, current, open }: EarlierProps) {
  const [all, setAll] = useState<readonly Earlier[]>()
  return (
    <details onToggle={({ currentTarget }) => setAll(currentTarget.open ? earlierThan(token, current()) : undefined)}>
      <summary className="text-muted text-xs">{text.earlier}</summary>
      {all?.length === 0 && <p className="text-muted text-xs">{text.noEarlier}</p>}
      <ul className="mt-1 max-h-48 overflow-y-auto">
        {all?.map(({ key, title, at }) => (
          <li key={key} className="flex items-baseline justify-between gap-3">
            <button
              type="button"
              className="text-accent min-h-6 min-w-0 truncate text-left underline"
              onClick={() => open(key)}
            >
              {title || text.untitled}
            </button>
            <span className="text-muted shrink-0 text-xs">
              <Time at={at} />
            </span>
          </li>
        ))}
      </ul>
    </details>
  )
}
