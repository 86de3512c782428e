package artifact
import ("testing";"net/http";"time";"github.com/berth-dev/berth/internal/host/memory")
func TestDbg(t *testing.T){
 s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("x"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
 m:=memory.New()
 f:=s.fetcher(Options{Budget: 600 * time.Millisecond, Stall: 100 * time.Millisecond})
 src,_:=parseSource(s.tls.URL,kubelet(""),nil)
 st,err:=f.one(t.Context(),m,kubelet("",s.tls.URL),src)
 t.Logf("%+v %T %v",st,err,err)
}
