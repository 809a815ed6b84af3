import { useEffect, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { useSession } from '../api/client.ts'
import { Dialog } from '../components/dialog.tsx'
import { pages } from '../pages.ts'
import { shellText } from '../text/shell.ts'

/** Milliseconds in which a letter follows `g`. */
const sequenceMs = 1_500

const isWriting = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest('dialog') !== null)

const isInDialog = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest('dialog') !== null

interface ShortcutsProps {
  shown: boolean
  show: (shown: boolean) => void
  find: () => void
}

/** Keyboard shortcuts of all pages: `/` searches, `g` and a letter goes to a page, Ctrl+K finds, `?` shows them. */
export function Shortcuts({ shown, show, find }: ShortcutsProps) {
  const [, go] = useLocation()
  const { can } = useSession()
  const began = useRef(0)
  const [offered] = useState(() => pages.filter(page => can(page.scope)))

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'k') {
        // A dialog is finished first.
        if (isInDialog(event.target)) return
        event.preventDefault()
        return find()
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return
      const follows = performance.now() - began.current < sequenceMs
      began.current = 0
      const page = follows ? offered.find(({ key }) => key === event.key) : undefined
      if (page) go(page.path)
      else if (event.key === 'g') began.current = performance.now()
      else if (event.key === '?') show(true)
      else if (event.key === '/') {
        const search = document.querySelector<HTMLElement>('main [type=search]')
        // Where nothing is searched, the page has its own use of the key.
        if (!search) return
        search.focus()
      } else return
      event.preventDefault()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [go, offered, show, find])

  if (!shown) return null
  const rows: { keys: string[]; between?: string; does: string }[] = [
    { keys: ['Ctrl', 'K'], between: '+', does: shellText.shortcutList.find },
    { keys: ['/'], does: shellText.shortcutList.search },
    ...offered.map(({ key, name }) => ({ keys: ['g', key], does: shellText.shortcutList.go(name) })),
    { keys: ['?'], does: shellText.shortcutList.show },
  ]
  return (
    <Dialog title={shellText.shortcuts} close={() => show(false)}>
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-2">
        {rows.map(({ keys, between = shellText.keyThen, does }) => (
          <div key={does} className="contents">
            <dt className="flex items-center gap-1">
              {keys.map((key, at) => (
                <span key={key} className="contents">
                  {at > 0 && <span className="text-muted text-xs">{between}</span>}
                  <kbd className="border-line bg-raised rounded border px-1.5 font-mono text-xs">{key}</kbd>
                </span>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
