import { ChevronsUpDown } from 'lucide-react'
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { useSession } from '../api/client.ts'
import { shellText } from '../text/shell.ts'
import { chooseTheme, themes, useTheme } from './theme.ts'

const itemClass =
  'flex min-h-8 w-full items-center rounded-md px-2 text-left hover:bg-raised focus-visible:bg-raised focus-visible:-outline-offset-2'

/** Who is signed in, with what belongs to the person and not to a page: theme, reference, shortcuts, signing out. */
export function AccountMenu({ showShortcuts }: { showShortcuts: () => void }) {
  const { session, signOut } = useSession()
  const theme = useTheme()
  const [isOpen, setOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  const menu = useRef<HTMLDivElement>(null)
  const items = () => [...menu.current!.querySelectorAll<HTMLElement>('[role^=menuitem]')]
  useEffect(() => {
    if (isOpen) items()[0]?.focus()
  }, [isOpen])
  const close = () => {
    setOpen(false)
    button.current?.focus()
  }
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Escape') close()
    else {
      const all = items()
      const at = all.indexOf(document.activeElement as HTMLElement)
      const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key]
      if (next === undefined) return
      all.at(next % all.length)?.focus()
    }
    event.preventDefault()
    event.stopPropagation()
  }
  const act = (action: () => void) => () => {
    close()
    action()
  }
  const account = shellText.account(session.token.name, session.organization.name)
  return (
    <div
      className="relative"
      onBlur={({ currentTarget, relatedTarget }) => {
        if (!currentTarget.contains(relatedTarget)) setOpen(false)
      }}
    >
      {isOpen && (
        <div
          ref={menu}
          role="menu"
          aria-label={shellText.accountMenu}
          tabIndex={-1}
          onKeyDown={press}
          className="bg-surface border-line animate-panel absolute inset-x-0 bottom-full z-40 mb-1 rounded-lg border p-1 shadow-lg"
        >
          <div role="group" aria-label={shellText.theme} className="flex gap-1">
            {themes.map(one => (
              <button
                key={one}
                type="button"
                role="menuitemradio"
                aria-checked={theme === one}
                tabIndex={-1}
                onClick={() => chooseTheme(one)}
                className={`${itemClass} justify-center text-xs ${theme === one ? 'bg-accent-soft text-accent font-medium' : ''}`}
              >
                {shellText.themes[one]}
              </button>
            ))}
          </div>
          <hr className="border-line my-1" />
          <a role="menuitem" tabIndex={-1} href="/docs" className={itemClass}>
            {shellText.documentation}
          </a>
          <a role="menuitem" tabIndex={-1} href="/docs/guides" className={itemClass}>
            {shellText.guides}
          </a>
          <button type="button" role="menuitem" tabIndex={-1} onClick={act(showShortcuts)} className={itemClass}>
            {shellText.shortcuts}
          </button>
          <button type="button" role="menuitem" tabIndex={-1} onClick={act(() => void signOut())} className={itemClass}>
            {shellText.signOut}
          </button>
        </div>
      )}
      <button
        ref={button}
        type="button"
        title={account}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        // Browsers that give a pressed button no focus would close the menu before the click.
        onPointerDown={event => isOpen && event.preventDefault()}
        onClick={() => (isOpen ? close() : setOpen(true))}
        className="hover:bg-raised flex min-h-10 w-full items-center gap-2 rounded-md px-2 py-1 text-left text-xs"
      >
        <span className="sr-only">{account}</span>
        <span aria-hidden className="min-w-0 flex-1">
          <span className="block truncate font-medium">{session.token.name}</span>
          <span className="text-muted block truncate">{session.organization.name}</span>
        </span>
        <ChevronsUpDown aria-hidden className="text-muted size-4 shrink-0" />
      </button>
    </div>
  )
}
