import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { queryClient } from './api/client.ts'
import { Console } from './console.tsx'
import { applyTheme } from './shell/theme.ts'

applyTheme()
createRoot(document.getElementById('console')!).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <Console />
    </QueryClientProvider>
  </StrictMode>,
)
